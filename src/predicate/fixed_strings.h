/// \file
/// A condition on strings of one length, for many of them at once: an element's first bytes are a whole number, and nearly every condition
/// is an interval of those. Only elements of which more bytes count than the number has are looked at one by one.
///
/// Invariant: what is said of an element is what HoldsOfStrings says of its characters without padding.
/// Thread safety: const functions may be called from any thread at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "predicate/element_type.h"
#include "predicate/loop.h"
#include "predicate/value.h"

namespace tidelane::predicate {

/// `second` is for kBetween.
bool HoldsOfStrings(Comparison comparison, std::string_view element, std::string_view first,
                    std::string_view second);

class FixedStrings {
 public:
  __extension__ using Big = unsigned __int128;

  /// The condition has as many constants as its comparison needs, all of them strings.
  FixedStrings(const Condition& condition, const ElementType& type);

  bool never() const { return never_; }
  bool always() const { return always_; }
  void Run(const unsigned char* elements, size_t count, uint64_t* words) const;
  uint64_t Count(const unsigned char* elements, size_t count) const;

  /// The exact test of one element, without any number. Slow.
  bool Matches(const unsigned char* element) const;

 private:
  /// An element whose first bytes differ from `bytes` is less or greater than the constant as they are.
  struct Key {
    template <class Word>
    Word Least(size_t offset) const;  ///< of the numbers that begin with the bytes from there on
    template <class Word>
    Word Most(size_t offset) const;
    template <class Word>
    bool Decides() const;  ///< nothing but the number counts

    std::string bytes;
    bool whole =
        true;  ///< no more than these count: if they do not differ, `shorter` says how it is
    bool shorter = false;  ///< the element is a part of the constant, and less; else equal
  };
  /// Elements whose numbers are outside of [low, low + span] do not match; inside they do, but where they are below
  /// low + doubtful_below, or low + doubtful_from or above: there an element has to be looked at.
  struct Interval {
    Big low = 0;
    Big span = ~Big{0};
    Big doubtful_below = 0;
    Big doubtful_from = ~Big{0};
    bool doubts = false;
  };
  using Loop64 = uint64_t (*)(const FixedStrings& strings, const unsigned char* elements,
                              size_t count, uint64_t* words);

  Key KeyOf(const std::string& constant) const;
  template <class Word>
  bool Limit();
  template <class Word>
  bool LimitBelow(bool with_equal);
  template <class Word>
  bool LimitAbove(const Key& key, bool with_equal);
  template <class Word>
  void Use();

  template <class Word, bool kDoubts>
  static uint64_t RunLoop(const FixedStrings& strings, const unsigned char* elements, size_t count,
                          uint64_t* words);
  bool Settle(const unsigned char* element) const;
  std::string_view Characters(const unsigned char* element) const;

  Comparison comparison_;
  std::string first_;
  std::string second_;
  ElementType::Pad pad_;
  size_t size_;

  Key first_key_;
  Key second_key_;
  size_t offset_ = 0;  ///< of the number in an element
  Interval interval_;
  bool inside_ = true;  ///< else those that do not fulfil it match
  bool never_ = false;
  bool always_ = false;
  Loop64 loop_ = nullptr;
  Loop numbers_ = nullptr;  ///< instead, where a whole element is a number of the processor's
  Range range_;
};

}  // namespace tidelane::predicate
