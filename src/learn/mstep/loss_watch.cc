#include "learn/mstep/loss_watch.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>

namespace rematch {

LossWatch::LossWatch() = default;
LossWatch::~LossWatch() = default;

void LossWatch::add(const at::Tensor& total) {
  const at::Device device = total.device();
  if (device.is_cpu()) {
    arriving_.push_back({.total = total.detach(), .arrival = nullptr});
    return;
  }
  at::Tensor on_host;
  try {
    on_host = at::empty({}, at::TensorOptions().dtype(total.scalar_type()).pinned_memory(true));
  } catch (const c10::Error&) {  // systems limit such memory; the window's end sees the loss
    return;
  }
  on_host.copy_(total.detach(), /*non_blocking=*/true);
  auto arrival = std::make_unique<c10::Event>(device.type());
  arrival->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  arriving_.push_back({.total = on_host, .arrival = std::move(arrival)});
}

bool LossWatch::sees_non_finite() {
  while (!arriving_.empty()) {
    const Arriving& next = arriving_.front();
    if (next.arrival && !next.arrival->query()) return false;
    const bool is_finite = std::isfinite(next.total.item<float>());
    arriving_.pop_front();
    if (!is_finite) return true;
  }
  return false;
}

}  // namespace rematch
