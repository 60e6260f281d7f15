/// \file
/// Flatbuffers knows how tables lie in memory; which fields they have is written here, as the format numbers them.
#include "tools/arrow_messages.h"

#ifdef TIDELANE_FLATBUFFERS
#include <bit>
#include <flatbuffers/flatbuffers.h>

namespace tidelane::tools {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
using Made = flatbuffers::Offset<void>;
using Slot = flatbuffers::voffset_t;

constexpr int16_t kVersion5 = 4;
constexpr uint8_t kSchema = 1;  // MessageHeader
constexpr uint8_t kRecordBatch = 3;
constexpr uint8_t kInt = 2;  // Type
constexpr uint8_t kFloatingPoint = 3;
constexpr uint8_t kUtf8 = 5;
constexpr uint8_t kBool = 6;
constexpr char kMagic[] = "ARROW1";
constexpr size_t kMagicBytes = 6;

// Structs of the format.
struct FieldNode {
  int64_t length;
  int64_t nulls;
};
struct Buffer {
  int64_t offset;
  int64_t length;
};
struct Block {
  int64_t offset;
  int32_t metadata;
  int32_t padding;
  int64_t body;
};

template <class Number>
Number Stored(Number number) {
  return flatbuffers::EndianScalar(number);
}

/// A table from its creation to its end, meanwhile nothing else is made.
class Table {
 public:
  explicit Table(Builder& builder) : builder_(builder), start_(builder.StartTable()) {}
  template <class Number>
  Table& Add(unsigned field, Number value) {
    builder_.AddElement<Number>(At(field), value, Number{});
    return *this;
  }
  template <class Type>
  Table& AddMade(unsigned field, flatbuffers::Offset<Type> made) {
    builder_.AddOffset(At(field), made);
    return *this;
  }
  Made End() { return Made(builder_.EndTable(start_)); }

 private:
  static Slot At(unsigned field) {
    return flatbuffers::FieldIndexToOffset(static_cast<Slot>(field));
  }

  Builder& builder_;
  flatbuffers::uoffset_t start_;
};

uint8_t MakeType(Builder& builder, const ArrowField& field, Made& made) {
  Table table(builder);
  switch (field.kind) {
    case ArrowField::Kind::kInteger:
      made = table.Add<int32_t>(0, static_cast<int32_t>(field.bytes * 8))
                 .Add<uint8_t>(1, field.is_signed)
                 .End();
      return kInt;
    case ArrowField::Kind::kFloat:  // half, single, double
      made = table.Add<int16_t>(0, static_cast<int16_t>(std::countr_zero(field.bytes) - 1)).End();
      return kFloatingPoint;
    case ArrowField::Kind::kText: made = table.End(); return kUtf8;
    case ArrowField::Kind::kTruth: break;
  }
  made = table.End();
  return kBool;
}

Made MakeField(Builder& builder, const ArrowField& field) {
  const auto name = builder.CreateString(field.name);
  const auto children = builder.CreateVector(std::vector<Made>());
  Made type;
  const uint8_t kind = MakeType(builder, field, type);
  return Table(builder)
      .AddMade(0, name)
      .Add<uint8_t>(2, kind)
      .AddMade(3, type)
      .AddMade(5, children)
      .End();
}

Made MakeSchema(Builder& builder, const std::vector<ArrowField>& fields) {
  std::vector<Made> made;
  for (const ArrowField& field : fields) made.push_back(MakeField(builder, field));
  const auto all = builder.CreateVector(made);
  constexpr bool kBigEndian = std::endian::native == std::endian::big;
  return Table(builder).Add<int16_t>(0, kBigEndian).AddMade(1, all).End();
}

void AppendWord(std::string& out, uint32_t word) {
  word = Stored(word);
  out.append(reinterpret_cast<const char*>(&word), sizeof word);
}

std::string Message(Builder& builder, uint8_t kind, Made header, uint64_t body) {
  builder.Finish(Table(builder)
                     .Add<int16_t>(0, kVersion5)
                     .Add<uint8_t>(1, kind)
                     .AddMade(2, header)
                     .Add<int64_t>(3, static_cast<int64_t>(body))
                     .End());
  const size_t size = builder.GetSize();
  const size_t fill = ArrowFill(size);
  std::string message;
  AppendWord(message, ~uint32_t{0});
  AppendWord(message, static_cast<uint32_t>(size + fill));
  message.append(reinterpret_cast<const char*>(builder.GetBufferPointer()), size);
  message.append(fill, '\0');
  return message;
}

}  // namespace

bool ArrowIsBuilt() { return true; }

std::string ArrowSchema(const std::vector<ArrowField>& fields) {
  Builder builder;
  const Made schema = MakeSchema(builder, fields);
  return Message(builder, kSchema, schema, 0);
}

std::string ArrowBatch(const std::vector<ArrowField>& fields, uint64_t rows,
                       const std::vector<uint64_t>& buffers) {
  Builder builder;
  const FieldNode node = {Stored(static_cast<int64_t>(rows)), 0};
  const std::vector<FieldNode> nodes(fields.size(), node);
  std::vector<Buffer> places;
  uint64_t at = 0;
  for (const uint64_t bytes : buffers) {
    places.push_back({Stored(static_cast<int64_t>(at)), Stored(static_cast<int64_t>(bytes))});
    at += bytes + ArrowFill(bytes);
  }
  const auto made_nodes = builder.CreateVectorOfStructs(nodes);
  const auto made_places = builder.CreateVectorOfStructs(places);
  const Made batch = Table(builder)
                         .Add<int64_t>(0, static_cast<int64_t>(rows))
                         .AddMade(1, made_nodes)
                         .AddMade(2, made_places)
                         .End();
  return Message(builder, kRecordBatch, batch, at);
}

std::string ArrowEnd() {
  std::string end;
  AppendWord(end, ~uint32_t{0});
  AppendWord(end, 0);
  return end;
}

std::string ArrowFileBegin() {
  std::string begin(kMagic, kMagicBytes);
  begin.append(ArrowFill(kMagicBytes), '\0');
  return begin;
}

std::string ArrowFileEnd(const std::vector<ArrowField>& fields,
                         const std::vector<ArrowBlock>& batches) {
  Builder builder;
  const Made schema = MakeSchema(builder, fields);
  std::vector<Block> blocks;
  for (const ArrowBlock& batch : batches)
    blocks.push_back({Stored(batch.offset), Stored(batch.metadata), 0, Stored(batch.body)});
  const auto made = builder.CreateVectorOfStructs(blocks);
  builder.Finish(
      Table(builder).Add<int16_t>(0, kVersion5).AddMade(1, schema).AddMade(3, made).End());
  std::string end(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  AppendWord(end, builder.GetSize());
  return end.append(kMagic, kMagicBytes);
}

}  // namespace tidelane::tools

#else

namespace tidelane::tools {

bool ArrowIsBuilt() { return false; }
std::string ArrowSchema(const std::vector<ArrowField>&) { return {}; }
std::string ArrowBatch(const std::vector<ArrowField>&, uint64_t, const std::vector<uint64_t>&) {
  return {};
}
std::string ArrowEnd() { return {}; }
std::string ArrowFileBegin() { return {}; }
std::string ArrowFileEnd(const std::vector<ArrowField>&, const std::vector<ArrowBlock>&) {
  return {};
}

}  // namespace tidelane::tools

#endif
