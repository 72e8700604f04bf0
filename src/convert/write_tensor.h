// One tensor of a checkpoint, packed and written.
#pragma once

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "format/writer.h"
#include "import/checkpoint.h"

namespace tsq::convert {

// Writes the tensor as its record says, which is the writer's next. advance(bytes) is called as
// that much more of the source is done; its error stops. Every ternary row block is unpacked
// again and compared with the source's codes and scales before it is written. damaged: a
// value is not finite; unsupported: a 2-bit type holds code 3, which is not ternary, the halves of
// a group of 128 have scales of their own and the record one for both, a narrowed value is beyond
// fp16.
Result<void> write_tensor(format::Writer& writer, const importer::Tensor& tensor,
                          const format::TensorRecord& record, ThreadPool& pool,
                          FunctionRef<Result<void>(std::uint64_t)> advance);

}  // namespace tsq::convert
