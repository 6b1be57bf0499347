"""The 64-bit counter generator of golden cases that C++ tests draw again, so that only results are
stored.
"""

MASK64 = (1 << 64) - 1


class Draw:
    """splitmix64."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK64
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
        return (z ^ (z >> 31)) % limit
