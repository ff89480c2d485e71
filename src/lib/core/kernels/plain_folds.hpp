// Folds of element types for which no vector loop is worth its code: booleans, and products of complex numbers. The
// compiler vectorises what it can. All tables of kernels have the same ones.
#pragma once

#include "core/kernels/kernel_table.hpp"

namespace col::core {

void fold_logical_and(const FoldCall& call);
void fold_logical_or(const FoldCall& call);
void fold_logical_xor(const FoldCall& call);
// Of the two parts as the textbook multiplies them, without C's extra rules for infinities.
void fold_complex64_product(const FoldCall& call);
void fold_complex128_product(const FoldCall& call);

}  // namespace col::core
