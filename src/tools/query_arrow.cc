#include "tools/query_arrow.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "tools/arrow_messages.h"
#include "tools/query_print.h"

namespace tidelane::tools {
namespace {

using Kind = predicate::ElementType::Kind;

constexpr uint64_t kBatchRows = 1 << 16;
constexpr uint64_t kBatchBytes = 4 << 20;
constexpr uint64_t kMostText = std::numeric_limits<int32_t>::max();

/// A column's part of the next batch.
struct Part {
  std::string values;            // of truth values a bit each
  std::vector<int32_t> offsets;  // texts: where each ends, after a 0

  void Clear() {
    values.clear();
    offsets.assign(1, 0);
  }
};

class ArrowWriter {
 public:
  ArrowWriter(QueryScan& scan, std::string path) : scan_(scan), path_(std::move(path)) {}

  bool Write(std::string& error) {
    if (!Describe(error) || !Open(error)) return false;
    if (!(path_.empty() || Put(ArrowFileBegin(), error)) || !Put(ArrowSchema(fields_), error))
      return false;
    QueryScan::Rows rows;
    do {
      if (!scan_.NextRows(SIZE_MAX, rows, error)) return false;
      for (size_t row = 0; row < rows.count;) {
        const size_t end = TakenAtOnce(rows, row);
        if (!AddRows(rows, row, end, error)) return false;
        row = end;
        if ((rows_ >= kBatchRows || Bytes() >= kBatchBytes) && !PutBatch(error)) return false;
      }
    } while (rows.count != 0);
    return PutBatch(error) && Put(ArrowEnd(), error) &&
           (path_.empty() || Put(ArrowFileEnd(fields_, batches_), error)) && Close(error);
  }

 private:
  // Coordinates first, under names that no column has.
  bool Describe(std::string& error) {
    for (const std::string& name : IndexNames(scan_.shape().size()))
      fields_.push_back({.name = FreeName(name)});
    for (size_t i = 0; i < scan_.cells().size(); ++i) {
      const CellType& cell = scan_.cells()[i];
      ArrowField field = {.name = scan_.source().columns()[i].name, .bytes = cell.element.size};
      field.is_signed = cell.element.kind == Kind::kSigned;
      if (cell.element.is_string()) {
        field.kind = ArrowField::Kind::kText;
      } else if (cell.truth) {
        field.kind = ArrowField::Kind::kTruth;
      } else if (cell.element.is_float()) {
        field.kind = ArrowField::Kind::kFloat;
        if (cell.element.kind == Kind::kBrainFloat) field.bytes = sizeof(float);
        if (field.bytes > sizeof(double)) {
          error = "column '" + field.name + "': Arrow has no long doubles; --csv and --output do";
          return false;
        }
      }
      fields_.push_back(std::move(field));
    }
    parts_.resize(fields_.size());
    for (Part& part : parts_) part.Clear();
    return true;
  }

  std::string FreeName(std::string name) const {
    const auto taken = [&](const SourceColumn& column) { return column.name == name; };
    while (std::ranges::any_of(scan_.source().columns(), taken)) name += '_';
    return name;
  }

  // Texts of any length: up to the row with which they are enough for a batch.
  size_t TakenAtOnce(const QueryScan::Rows& rows, size_t begin) const {
    uint64_t bytes = 0;
    size_t row = begin;
    while (row < rows.count && bytes < kBatchBytes) {
      bytes += sizeof(uint64_t);
      for (size_t i = 0; i < scan_.cells().size(); ++i)
        bytes += scan_.cells()[i].element.kind == Kind::kVariableString
                     ? scan_.Text(i, rows, row).size()
                     : scan_.cells()[i].element.size;
      ++row;
    }
    return row;
  }

  bool AddRows(const QueryScan::Rows& rows, size_t begin, size_t end, std::string& error) {
    AddCoordinates(rows, begin, end);
    for (size_t i = 0; i < scan_.cells().size(); ++i) {
      const CellType& cell = scan_.cells()[i];
      Part& part = parts_[scan_.shape().size() + i];
      if (cell.element.is_string()) {
        if (!AddTexts(i, rows, begin, end, error)) return false;
      } else if (cell.truth) {
        AddTruths(part, i, rows, begin, end);
      } else if (cell.element.kind == Kind::kBrainFloat) {
        for (size_t row = begin; row < end; ++row) {
          uint16_t bits;
          std::memcpy(&bits, scan_.Element(i, rows, row), sizeof bits);
          Append(part, uint32_t{bits} << 16);
        }
      } else {
        part.values.append(reinterpret_cast<const char*>(scan_.Element(i, rows, begin)),
                           (end - begin) * cell.element.size);
      }
    }
    rows_ += end - begin;
    return true;
  }

  template <class Number>
  static void Append(Part& part, Number number) {
    part.values.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  void AddCoordinates(const QueryScan::Rows& rows, size_t begin, size_t end) {
    const std::vector<uint64_t>& shape = scan_.shape();
    for (size_t row = begin; row < end; ++row) {
      uint64_t rest = rows.positions[row];
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) Append(parts_[d], rest % shape[d]);
    }
  }

  void AddTruths(Part& part, size_t column, const QueryScan::Rows& rows, size_t begin, size_t end) {
    const size_t size = scan_.cells()[column].element.size;
    for (size_t row = begin; row < end; ++row) {
      const uint64_t at = rows_ + row - begin;
      if (at % 8 == 0) part.values += '\0';
      const std::byte* const element = scan_.Element(column, rows, row);
      const bool truth =
          std::any_of(element, element + size, [](std::byte b) { return b != std::byte{0}; });
      part.values.back() = static_cast<char>(part.values.back() | (truth ? 1 << at % 8 : 0));
    }
  }

  bool AddTexts(size_t column, const QueryScan::Rows& rows, size_t begin, size_t end,
                std::string& error) {
    Part& part = parts_[scan_.shape().size() + column];
    const std::string& name = scan_.source().columns()[column].name;
    for (size_t row = begin; row < end; ++row) {
      const std::string_view text = scan_.Text(column, rows, row);
      if (!IsUtf8(text)) {
        error = "column '" + name + "' has a string that is no UTF-8, as Arrow's are: '" +
                Shown(text, 40) + "'; --csv and --output give its bytes";
        return false;
      }
      if (text.size() > kMostText - part.values.size()) {
        error = "column '" + name + "' has a string that is too long for Arrow";
        return false;
      }
      part.values += text;
      part.offsets.push_back(static_cast<int32_t>(part.values.size()));
    }
    return true;
  }

  uint64_t Bytes() const {
    uint64_t bytes = 0;
    for (const Part& part : parts_) bytes += part.values.size();
    return bytes;
  }

  bool PutBatch(std::string& error) {
    if (rows_ == 0) return true;
    std::vector<uint64_t> sizes;
    for (size_t i = 0; i < fields_.size(); ++i) {
      sizes.push_back(0);
      if (fields_[i].kind == ArrowField::Kind::kText)
        sizes.push_back(parts_[i].offsets.size() * sizeof(int32_t));
      sizes.push_back(parts_[i].values.size());
    }
    const std::string message = ArrowBatch(fields_, rows_, sizes);
    ArrowBlock block = {written_, static_cast<int32_t>(message.size()), 0};
    if (!Put(message, error)) return false;
    for (size_t i = 0; i < fields_.size(); ++i) {
      const std::vector<int32_t>& offsets = parts_[i].offsets;
      if (fields_[i].kind == ArrowField::Kind::kText &&
          !PutFilled(
              {reinterpret_cast<const char*>(offsets.data()), offsets.size() * sizeof(int32_t)},
              error))
        return false;
      if (!PutFilled(parts_[i].values, error)) return false;
      parts_[i].Clear();
    }
    block.body = written_ - block.offset - block.metadata;
    if (!path_.empty()) batches_.push_back(block);
    rows_ = 0;
    return true;
  }

  bool PutFilled(std::string_view bytes, std::string& error) {
    static constexpr char kZeros[kArrowAlignment] = {};
    return Put(bytes, error) && Put({kZeros, ArrowFill(bytes.size())}, error);
  }

  bool Open(std::string& error) {
    if (path_.empty()) return true;
    file_.reset(std::fopen(path_.c_str(), "wb"));
    return file_ != nullptr || Failed(error);
  }

  bool Put(std::string_view bytes, std::string& error) {
    std::FILE* const to = path_.empty() ? stdout : file_.get();
    if (std::fwrite(bytes.data(), 1, bytes.size(), to) != bytes.size()) return Failed(error);
    written_ += static_cast<int64_t>(bytes.size());
    return true;
  }

  bool Close(std::string& error) {
    const int closed = path_.empty() ? std::fflush(stdout) : std::fclose(file_.release());
    return closed == 0 || Failed(error);
  }

  bool Failed(std::string& error) const {
    error = std::string(path_.empty() ? "stdout" : "the new file") +
            " cannot be written to: " + std::strerror(errno);
    return false;
  }

  struct Closing {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  QueryScan& scan_;
  std::string path_;
  std::vector<ArrowField> fields_;
  std::vector<Part> parts_;
  uint64_t rows_ = 0;  // in them
  std::vector<ArrowBlock> batches_;
  int64_t written_ = 0;
  std::unique_ptr<std::FILE, Closing> file_;
};

}  // namespace

bool WriteArrow(QueryScan& scan, const std::string& path, std::string& error) {
  return ArrowWriter(scan, path).Write(error);
}

}  // namespace tidelane::tools
