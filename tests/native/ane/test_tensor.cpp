#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

#include "ane/tensor.h"

namespace {

using namespace nnbt::ane;

// The live list of a 1 x 4 x 1 x 4 float16 tensor, from a loaded model.
Tensor published() {
  Tensor t;
  t.type = "Float16";
  t.batches = t.depth = t.height = t.interleave = 1;
  t.channels = t.width = 4;
  t.batch_stride = t.depth_stride = 256;
  t.plane_stride = t.row_stride = 64;
  return t;
}

std::vector<std::byte> counting(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

TEST_CASE("a published live list: rows are 64 bytes apart") {
  const Tensor t = complete(published());
  CHECK(surface_bytes(t) == 256);
  CHECK(dense_bytes(t) == 32);
  std::vector<std::byte> surface(300, std::byte{0xEE});
  copy_to_surface(t, counting(32), surface);
  CHECK(surface[0] == std::byte{1});
  CHECK(surface[7] == std::byte{8});
  CHECK(surface[8] == std::byte{0xEE});
  CHECK(surface[64] == std::byte{9});
  CHECK(surface[192 + 7] == std::byte{32});
  CHECK(surface[256] == std::byte{0xEE});
  CHECK(copy_from_surface(t, surface) == counting(32));
}

TEST_CASE("missing strides become the smallest that fit, rows multiples of 64 bytes") {
  Tensor t;
  t.type = "Int8";
  t.batches = 2;
  t.channels = 3;
  t.height = 5;
  t.width = 70;
  t = complete(t);
  CHECK(t.depth == 1);
  CHECK(t.row_stride == 128);
  CHECK(t.plane_stride == 640);
  CHECK(t.depth_stride == 1920);
  CHECK(t.batch_stride == 1920);
  CHECK(surface_bytes(t) == 3840);
  const std::vector<std::byte> dense = counting(dense_bytes(t));
  std::vector<std::byte> surface(surface_bytes(t));
  copy_to_surface(t, dense, surface);
  CHECK(surface[1920 + 640 + 128] == dense[(((1 * 3) + 1) * 5 + 1) * 70]);
  CHECK(copy_from_surface(t, surface) == dense);
}

TEST_CASE("a row that fills its stride is dense") {
  Tensor t = published();
  t.width = 32;
  t = complete(t);
  std::vector<std::byte> surface(256);
  copy_to_surface(t, counting(256), surface);
  CHECK(surface == counting(256));
}

TEST_CASE("layouts that would be misread are refused with a reason") {
  const auto refused = [](auto change) {
    Tensor t = published();
    change(t);
    CHECK_THROWS_AS(complete(t), std::runtime_error);
  };
  refused([](Tensor& t) { t.type = "Float8"; });
  refused([](Tensor& t) { t.interleave = 4; });
  refused([](Tensor& t) { t.width = -1; });
  refused([](Tensor& t) { t.channels = std::int64_t{1} << 40; });
  refused([](Tensor& t) { t.row_stride = 4; });
  refused([](Tensor& t) { t.plane_stride = 32; });
  refused([](Tensor& t) { t.depth_stride = 192; });
  refused([](Tensor& t) { t.batch_stride = 64; });
  refused([](Tensor& t) { t.batch_stride = std::int64_t{1} << 62; });
  refused([](Tensor& t) {
    t.batches = 1 << 20;
    t.batch_stride = std::int64_t{1} << 36;
  });
  const Tensor t = complete(published());
  std::vector<std::byte> surface(256);
  CHECK_THROWS_AS(copy_to_surface(t, counting(30), surface), std::runtime_error);
  surface.resize(255);
  CHECK_THROWS_AS(copy_to_surface(t, counting(32), surface), std::runtime_error);
  CHECK_THROWS_AS(copy_from_surface(t, surface), std::runtime_error);
}

}  // namespace
