#include "engine/ranks/stream_waits.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>

namespace rematch {

c10::Stream StreamWaits::stream() const {
  return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
}

void StreamWaits::add(const std::function<void()>& wait_on_stream) {
  const auto record = [this] {
    c10::Event event(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // with its time
    event.record(stream());
    return event;
  };
  c10::Event begin = record();
  wait_on_stream();
  waits_.emplace_back(std::move(begin), record());
}

double StreamWaits::take_s() {
  double ms = 0;
  try {
    for (; !waits_.empty() && waits_.front().second.query(); waits_.pop_front())
      ms += waits_.front().first.elapsedTime(waits_.front().second);
  } catch (const std::exception&) {  // the device has failed, which the next work on it reports
    waits_.clear();
  }
  return ms / 1000;
}

}  // namespace rematch
