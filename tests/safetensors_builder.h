// Safetensors files for tests, by the format's description.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_writer.h"
#include "base/errorf.h"

namespace tsq::safetensors {

inline std::vector<std::byte> file(std::string_view header, std::span<const std::byte> data) {
  ByteWriter out;
  out.write(static_cast<std::uint64_t>(header.size()));
  out.write_text(header);
  out.write_bytes(data);
  return out.take();
}

class Builder {
 public:
  Builder& add(std::string_view name, std::string_view dtype,
               const std::vector<std::uint64_t>& shape, std::span<const std::byte> data) {
    std::string dims;
    for (const std::uint64_t dim : shape) {
      if (!dims.empty()) dims += ',';
      dims += std::to_string(dim);
    }
    if (!entries_.empty()) entries_ += ',';
    entries_ += stringf(R"("%s":{"dtype":"%s","shape":[%s],"data_offsets":[%zu,%zu]})",
                        std::string(name).c_str(), std::string(dtype).c_str(), dims.c_str(),
                        data_.size(), data_.size() + data.size());
    data_.write_bytes(data);
    return *this;
  }
  std::vector<std::byte> build() const { return file("{" + entries_ + "}", data_.bytes()); }

 private:
  std::string entries_;
  ByteWriter data_;
};

}  // namespace tsq::safetensors
