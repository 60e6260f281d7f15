#include "tools/query_print.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "base/words.h"
#include "tools/summary_file.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

constexpr size_t kMostCell = 40;   // characters of a string
constexpr size_t kMostKept = 200;  // rows of which the widths of columns are those
constexpr size_t kFlushBytes = 1 << 16;

void CoordinatesOf(uint64_t position, const std::vector<uint64_t>& shape,
                   std::vector<uint64_t>& coordinates) {
  coordinates.resize(shape.size());
  for (size_t d = shape.size(); d-- > 0; position /= shape[d]) coordinates[d] = position % shape[d];
}

void AppendWhole(std::string& out, uint64_t number) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, number).ptr);
}

bool Flush(std::string& text, std::string& error) {
  const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!whole) error = std::string("stdout cannot be written to: ") + std::strerror(errno);
  text.clear();
  return whole;
}

bool Finish(std::string& text, std::string& error) {
  if (!Flush(text, error)) return false;
  if (std::fflush(stdout) == 0) return true;
  error = std::string("stdout cannot be written to: ") + std::strerror(errno);
  return false;
}

/// Rows until their widths are known, and from then on as they come.
class Table {
 public:
  explicit Table(const QueryScan& scan) : scan_(scan), names_(IndexNames(scan.shape().size())) {
    left_.resize(names_.size());
    for (size_t i = 0; i < scan.cells().size(); ++i) {
      names_.push_back(Shown(scan.source().columns()[i].name, kMostCell));
      left_.push_back(scan.cells()[i].element.is_string());
    }
    for (const std::string& name : names_) widths_.push_back(Characters(name));
  }

  void Add(const QueryScan::Rows& rows) {
    std::vector<uint64_t> coordinates;
    for (size_t row = 0; row < rows.count; ++row) {
      std::vector<std::string> cells;
      CoordinatesOf(rows.positions[row], scan_.shape(), coordinates);
      for (const uint64_t at : coordinates) cells.push_back(std::to_string(at));
      for (size_t i = 0; i < scan_.cells().size(); ++i) cells.push_back(Cell(i, rows, row));
      if (printed_) {
        Line(cells);
      } else {
        for (size_t i = 0; i < cells.size(); ++i)
          widths_[i] = std::max(widths_[i], Characters(cells[i]));
        kept_.push_back(std::move(cells));
      }
    }
  }

  size_t kept() const { return kept_.size(); }
  bool printed() const { return printed_; }
  std::string& text() { return text_; }

  /// Everything that is kept.
  void Print() {
    if (printed_) return;
    printed_ = true;
    if (kept_.empty()) return;
    const size_t begin = text_.size();
    Line(names_);
    std::string head = text_.substr(begin, text_.size() - begin - 1);
    text_.resize(begin);
    text_ += Coloured(Colour::kBold, head) + "\n";
    for (const std::vector<std::string>& cells : kept_) Line(cells);
    kept_.clear();
  }

 private:
  std::string Cell(size_t column, const QueryScan::Rows& rows, size_t row) const {
    if (scan_.cells()[column].element.is_string())
      return Shown(scan_.Text(column, rows, row), kMostCell);
    std::string cell;
    AppendNumber(cell, scan_.cells()[column], scan_.Element(column, rows, row));
    return cell;
  }

  void Line(const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t width = Characters(cells[i]);
      const std::string blanks(widths_[i] - std::min(width, widths_[i]), ' ');
      const bool last = i + 1 == cells.size();
      text_ += left_[i] ? cells[i] + (last ? "" : blanks) : blanks + cells[i];
      text_ += last ? "\n" : "  ";
    }
  }

  const QueryScan& scan_;
  std::vector<std::string> names_;
  std::vector<bool> left_;
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> kept_;
  std::string text_;
  bool printed_ = false;
};

std::string TextOr(const Json& json, const char* key, const char* otherwise) {
  const std::string text = TextAt(json, key);
  return text.empty() ? otherwise : text;
}

}  // namespace

std::vector<std::string> IndexNames(size_t rank) {
  if (rank == 1) return {"index"};
  std::vector<std::string> names;
  for (size_t d = 0; d < rank; ++d) names.push_back("index" + std::to_string(d));
  return names;
}

std::string HitsInWords(uint64_t hits, const QueryScan& scan) {
  return (hits == 0 ? "no hits" : CountInWords(hits, "hit")) + " in " +
         CountInWords(scan.progressed().total, "element");
}

bool PrintTable(QueryScan& scan, uint64_t limit, const std::function<void()>& before_lines,
                std::string& error) {
  Table table(scan);
  uint64_t shown = 0;
  const uint64_t most = limit == 0 ? std::numeric_limits<uint64_t>::max() : limit;
  QueryScan::Rows rows;
  while (shown < most) {
    const size_t wanted = std::min<uint64_t>(most - shown, table.printed() ? SIZE_MAX : kMostKept);
    if (!scan.NextRows(wanted, rows, error)) return false;
    if (rows.count == 0) break;
    table.Add(rows);
    shown += rows.count;
    if (table.kept() >= kMostKept) table.Print();
    if (table.text().size() < kFlushBytes) continue;
    before_lines();
    if (!Flush(table.text(), error)) return false;
  }
  table.Print();
  before_lines();
  if (!Finish(table.text(), error)) return false;
  uint64_t hits = 0;
  if (!scan.Count(hits, error)) return false;
  before_lines();
  std::string end = HitsInWords(hits, scan);
  if (shown < hits) end += ", of which the first " + std::to_string(shown) + " are shown";
  end += '\n';
  return Finish(end, error);
}

bool PrintCsv(QueryScan& scan, std::string& error) {
  std::string text;
  for (const std::string& name : IndexNames(scan.shape().size())) text += name + ",";
  for (const SourceColumn& column : scan.source().columns()) {
    AppendField(text, column.name);
    text += ',';
  }
  text.back() = '\n';
  std::vector<uint64_t> coordinates;
  QueryScan::Rows rows;
  for (;;) {
    if (!scan.NextRows(SIZE_MAX, rows, error)) return false;
    if (rows.count == 0) return Finish(text, error);
    for (size_t row = 0; row < rows.count; ++row) {
      CoordinatesOf(rows.positions[row], scan.shape(), coordinates);
      for (const uint64_t at : coordinates) {
        AppendWhole(text, at);
        text += ',';
      }
      for (size_t i = 0; i < scan.cells().size(); ++i) {
        scan.cells()[i].element.is_string()
            ? AppendField(text, scan.Text(i, rows, row))
            : AppendNumber(text, scan.cells()[i], scan.Element(i, rows, row));
        text += ',';
      }
      text.back() = '\n';
      if (text.size() >= kFlushBytes && !Flush(text, error)) return false;
    }
  }
}

void PrintExplained(const QueryScan& scan, bool counted, double seconds) {
  const Json json = Json::parse(scan.Explained(), nullptr, false);
  std::string text = "query     " + TextAt(json, "query") + "\n";
  std::string shape;
  for (const uint64_t length : scan.shape())
    shape += (shape.empty() ? "" : " x ") + std::to_string(length);
  text += "elements  " + std::to_string(WholeAt(json, "elements")) +
          (scan.shape().size() < 2 ? "" : " (" + shape + ")") + ", in " +
          CountInWords(WholeAt(json, "blocks"), "block") + "\n";
  for (const Json& column : At(json, "columns")) {
    std::string filters;
    for (const Json& filter : At(column, "filters")) {
      filters += (filters.empty() ? "" : ", ") +
                 (filter.is_string() ? filter.get<std::string>() : filter.dump());
    }
    const std::string field = TextAt(column, "field");
    text += "column    " + TextAt(column, "name") + ": " + TextAt(column, "type") + ", " +
            (field.empty() ? "" : "field " + field + " of ") + TextAt(column, "dataset") + ", " +
            TextOr(column, "layout", "stored") + (filters.empty() ? "" : " (" + filters + ")") +
            ", read " + TextAt(column, "read") + "\n";
  }
  text += "strategy  " + TextAt(json, "strategy") + "\n";
  if (counted) {
    const Json& scanned = At(json, "scanned");
    text += "looked at " + CountInWords(WholeAt(scanned, "elements"), "element") + ", " +
            BytesInWords(WholeAt(scanned, "bytes")) + ", in " +
            CountInWords(WholeAt(scanned, "blocks"), "block");
    Print(text, ": %.3f s\n", seconds);
  }
  std::fputs(text.c_str(), stdout);
}

}  // namespace tidelane::tools
