// Takes the place of the library's file of this name, whose partial specializations g++ refuses.
#pragma once
#include <utility>

#include "tla/numeric/integral_constant.hpp"
#include "tla/type_traits.hpp"

namespace tla {

template <class T, T... Ns>
using IntegerSequence = std::integer_sequence<T, Ns...>;
template <class T, T N>
using MakeIntegerSequence = std::make_integer_sequence<T, N>;
template <size_t... Ns>
using index_sequence = std::index_sequence<Ns...>;
template <size_t N>
using make_index_sequence = std::make_index_sequence<N>;
template <int... Ns>
using int_sequence = std::integer_sequence<int, Ns...>;
template <int N>
using make_int_sequence = std::make_integer_sequence<int, N>;
template <int... Ns>
using seq = int_sequence<Ns...>;
template <int N>
using make_seq = make_int_sequence<N>;
template <class Tuple>
using tuple_seq = make_seq<int(tuple_size<remove_cvref_t<Tuple>>::value)>;

}  // namespace tla
