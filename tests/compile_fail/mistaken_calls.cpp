// The likely mistakes in calls. docs/errors.md lists what the compiler says about each.
// Each mistake and what is said about it stand on one line.
// clang-format off
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include <col/col.hpp>

// MPI's way: a pointer and a count.
void call_with_pointer_and_count(col::Group& world) {
  std::vector<float> data(8);
  world.allreduce(data.data(), data.size());  // expected-error: a pointer has no count: write std::span(pointer, count)
}

// A pointer says where a buffer begins, and not where it ends.
void call_with_pointer_alone(col::Group& world) {
  std::vector<float> data(8);
  world.send(data.data(), 1);  // expected-error: a pointer has no count: write std::span(pointer, count)
}

// Also where the pointer is only one of the buffers.
void gather_with_pointer(col::Group& world) {
  std::vector<float> data(8);
  world.allgather(data, data.data());  // expected-error: a pointer has no count: write std::span(pointer, count)
}

// A range knows how many elements it has.
void call_with_count(col::Group& world) {
  std::vector<float> data(8);
  world.allreduce(data, data.size());  // expected-error: a range knows its count: leave it out, or cut it with std::span
}

// The reduce op is an option, and not an argument.
void call_with_operator(col::Group& world) {
  std::vector<float> data(8);
  world.allreduce(data, col::ReduceOp::max);  // expected-error: the operator is an option: write {.op = col::ReduceOp::max}
}

// The same with the free function.
void free_call_with_operator(col::Group&) {
  std::vector<float> data(8);
  col::allreduce(data, col::ReduceOp::max);  // expected-error: the operator is an option: write {.op = col::ReduceOp::max}
}

// The same behind two buffers.
void call_with_operator_behind_output(col::Group& world) {
  std::vector<float> in(8), out(8);
  world.allreduce(in, out, col::ReduceOp::max);  // expected-error: the operator is an option: write {.op = col::ReduceOp::max}
}

// The root is an option, and not an argument.
void broadcast_with_root(col::Group& world) {
  std::vector<float> data(8);
  world.broadcast(data, 0);  // expected-error: the root is an option: write {.root = 0}
}

// The root is an option, and not an argument.
void reduce_with_root(col::Group& world) {
  std::vector<float> data(8);
  world.reduce(data, 0);  // expected-error: the root is an option: write {.root = 0}
}

// std::vector<bool> packs its elements into bits: there is no array to point to.
void call_with_vector_bool(col::Group& world) {
  std::vector<bool> flags(8);
  world.allreduce(flags);  // expected-error: vector<bool> packs bits: use std::vector<std::uint8_t>
}

// The result would be gone with the temporary.
void call_with_temporary(col::Group& world) {
  world.allreduce(std::vector<float>(8));  // expected-error: a temporary: its result would be lost; name a variable
}

// The result would be gone with the temporary.
void call_with_temporary_number(col::Group& world) {
  world.allreduce(1.5);  // expected-error: a temporary: its result would be lost; name a variable
}

// What a call writes cannot be const.
void call_with_const(col::Group& world) {
  const std::vector<float> data(8);
  world.allreduce(data);  // expected-error: it is const: what a call writes cannot be
}

// What a call writes cannot be const.
void call_with_const_number(col::Group& world) {
  const double residual = 1;
  world.allreduce(residual);  // expected-error: it is const: what a call writes cannot be
}

// A struct has no reduction, and no dtype.
void call_with_struct(col::Group& world) {
  struct Point { double x, y; };
  std::vector<Point> points(8);
  world.allgather(points, points);  // expected-error: a struct is no element: send its members, or use allgather_object
}

// Text is an object: its length may differ between ranks.
void call_with_string(col::Group& world) {
  std::string text = "hello";
  world.broadcast(text);  // expected-error: no dtype for these elements: use std::int32_t, float … (text: broadcast_object)
}

// A long double has no dtype: it differs between machines.
void call_with_long_doubles(col::Group& world) {
  std::vector<long double> wide(8);
  world.allreduce(wide);  // expected-error: no dtype for these elements: use std::int32_t, float … (text: broadcast_object)
}

void call_with_long_double(col::Group& world) {
  long double done = 0;
  world.allreduce(done, {.op = col::ReduceOp::bor});  // expected-error: no dtype for this number: use std::int32_t, float …
}

// The elements of a list lie apart.
void call_with_list(col::Group& world) {
  std::list<float> data(8);
  world.allreduce(data);  // expected-error: not contiguous: copy it into a std::vector
}

// Each row of a vector of vectors has memory of its own.
void call_with_rows(col::Group& world) {
  std::vector<std::vector<float>> rows(8);
  world.allreduce(rows);  // expected-error: rows of their own: copy them into one std::vector
}

// A collective does not convert.
void call_with_mixed_types(col::Group& world) {
  std::vector<float> in(8);
  std::vector<double> out(8);
  world.allreduce(in, out);  // expected-error: in and out differ in their element type: convert one of them
}
