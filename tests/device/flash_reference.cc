#include "device/flash_reference.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "support/pretend_device.h"
#include "support/pretend_memory.h"

namespace rematch::test {
namespace {

std::atomic<int64_t> num_calls{0};

/// One head of one segment, float32: rows of queries [Q, D] and keys [K, D], and where they come
/// from.
struct Head {
  at::Tensor q, k, v;
  int64_t first_q = 0, first_k = 0, q_head = 0, k_head = 0;
  bool is_causal = false;

  double scale() const { return 1 / std::sqrt(static_cast<double>(q.size(1))); }
  at::Tensor probabilities_QK() const {
    at::Tensor scores = at::mm(q, k.t()) * scale();
    if (is_causal) {  // the last query sees the last key
      const at::Tensor hidden = at::ones_like(scores, at::kBool).triu(k.size(0) - q.size(0) + 1);
      scores = scores.masked_fill(hidden, -std::numeric_limits<float>::infinity());
    }
    return scores.softmax(-1);
  }
};

/// Inputs of the forward and the backward pass. Tensors are on the CPU.
struct Rows {
  at::Tensor q, k, v, begins_q, begins_k;
  bool is_causal = false;
};

void for_heads(const Rows& rows, const std::function<void(const Head&)>& work) {
  const int32_t* from_q = rows.begins_q.const_data_ptr<int32_t>();
  const int32_t* from_k = rows.begins_k.const_data_ptr<int32_t>();
  const int64_t group = rows.q.size(1) / rows.k.size(1);
  const auto part = [](const at::Tensor& x, int64_t head, const int32_t* from) {
    return x.narrow(0, from[0], from[1] - from[0]).select(1, head).to(at::kFloat);
  };
  for (int64_t s = 0; s + 1 < rows.begins_q.numel(); ++s, ++from_q, ++from_k) {
    for (int64_t h = 0; h < rows.q.size(1) && from_q[0] < from_q[1]; ++h) {
      const int64_t g = h / group;
      work({part(rows.q, h, from_q), part(rows.k, g, from_k), part(rows.v, g, from_k), from_q[0],
            from_k[0], h, g, rows.is_causal});
    }
  }
}

void check_longest(const at::Tensor& begins, const c10::IValue& longest) {
  const at::Tensor lens = begins.diff();
  TORCH_CHECK(begins.scalar_type() == at::kInt && lens.min().item<int64_t>() > 0,
              "cumulative lengths");
  TORCH_CHECK(lens.max().item<int64_t>() == longest.toSymInt().expect_int(), "the longest of them");
}

// The rows of keys or values that sequences see in their pages, one sequence after the other.
at::Tensor rows_in_pages(const at::Tensor& pages, const at::Tensor& table, const at::Tensor& lens) {
  TORCH_CHECK(table.scalar_type() == at::kInt && lens.scalar_type() == at::kInt &&
                  table.stride(-1) == 1 && lens.is_contiguous() && lens.size(0) == table.size(0),
              "a block table");
  TORCH_CHECK(pages.dim() == 4 && pages.size(1) % 256 == 0 && pages.stride(-1) == 1, "pages");
  std::vector<at::Tensor> rows;
  for (int64_t s = 0; s < table.size(0); ++s) {
    rows.push_back(
        pages.index_select(0, table[s]).flatten(0, 1).narrow(0, 0, lens[s].item<int64_t>()));
  }
  return at::cat(rows);
}

std::vector<c10::IValue> arguments_of(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  return torch::jit::pop(*stack, op.schema().arguments().size());
}

// Boxed, because releases of torch append arguments: query, key, value, cum_seq_q, cum_seq_k,
// max_q, max_k, dropout_p, is_causal, return_debug_mask, scale, window sizes, seqused_k,
// alibi_slopes, block_table, …
void forward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::vector<c10::IValue> arguments = arguments_of(op, stack);
  const auto tensor = [&](size_t i) { return seen_by_host(arguments[i].toTensor()); };
  const at::Tensor q = tensor(0), begins_q = tensor(3), begins_k = tensor(4);
  at::Tensor k = tensor(1), v = tensor(2);
  ++num_calls;
  count_launch(op.schema().name(), {q.sizes().vec(), k.sizes().vec()});
  check_longest(begins_q, arguments[5]);
  if (arguments[15].isNone()) {
    check_longest(begins_k, arguments[6]);
  } else {
    const at::Tensor lens = tensor(13), table = tensor(15);
    TORCH_CHECK(at::equal(begins_k.diff(), lens) &&
                    lens.max().item<int64_t>() <= arguments[6].toSymInt().expect_int(),
                "lengths of the sequences");
    k = rows_in_pages(k, table, lens);
    v = rows_in_pages(v, table, lens);
  }
  at::Tensor out = at::zeros(q.sizes(), at::kFloat);
  for_heads({q, k, v, begins_q, begins_k, arguments[8].toBool()}, [&](const Head& head) {
    out.narrow(0, head.first_q, head.q.size(0))
        .select(1, head.q_head)
        .copy_(at::mm(head.probabilities_QK(), head.v));
  });
  stack->push_back(given_to_device(out.to(q.scalar_type())));
  for (int i = 0; i < 4; ++i) stack->push_back(given_to_device(at::zeros({1})));
}

// grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
// is_causal, …
void backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::vector<c10::IValue> arguments = arguments_of(op, stack);
  const auto tensor = [&](size_t i) { return seen_by_host(arguments[i].toTensor()); };
  count_launch(op.schema().name());
  const at::Tensor gradient = tensor(0), q = tensor(1), k = tensor(2), v = tensor(3);
  at::Tensor grad_q = at::zeros(q.sizes(), at::kFloat), grad_k = at::zeros(k.sizes(), at::kFloat),
             grad_v = at::zeros_like(grad_k);
  for_heads({q, k, v, tensor(6), tensor(7), arguments[11].toBool()}, [&](const Head& head) {
    const auto of_queries = [&](const at::Tensor& x) {
      return x.narrow(0, head.first_q, head.q.size(0)).select(1, head.q_head);
    };
    const auto of_keys = [&](const at::Tensor& x) {
      return x.narrow(0, head.first_k, head.k.size(0)).select(1, head.k_head);
    };
    const at::Tensor d_out = of_queries(gradient).to(at::kFloat);
    const at::Tensor p = head.probabilities_QK(), d_p = at::mm(d_out, head.v.t());
    const at::Tensor d_scores = p * (d_p - (d_p * p).sum(-1, true)) * head.scale();
    of_queries(grad_q).add_(at::mm(d_scores, head.k));
    of_keys(grad_k).add_(at::mm(d_scores.t(), head.q));
    of_keys(grad_v).add_(at::mm(p.t(), d_out));
  });
  for (const at::Tensor& x : {grad_q, grad_k, grad_v})
    stack->push_back(given_to_device(x.to(q.scalar_type())));
}

}  // namespace

int64_t num_flash_calls() { return num_calls; }

void give_flash_to_pretend_device() {
  pretend_device();
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__,
                             __LINE__);
  aten.impl("_flash_attention_forward", torch::CppFunction::makeFromBoxedFunction<&forward>());
  aten.impl("_flash_attention_backward", torch::CppFunction::makeFromBoxedFunction<&backward>());
}

}  // namespace rematch::test
