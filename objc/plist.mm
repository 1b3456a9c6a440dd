#include "package/plist.h"

#import "support.h"

namespace nnbt {
namespace {

// Binary property lists can share objects, so 20 nested arrays of a few bytes can expand to 14^20
// values. Both limits are far beyond any manifest.
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxCost = 64U << 20U;
constexpr std::size_t kCostOfValue = 64;

class TreeCopier {
 public:
  // Empty if the whole tree was copied.
  const std::string& problem() const { return problem_; }

  Plist copy(id _Nullable object, std::size_t depth = 0) {
    Plist out;
    if (depth > kMaxDepth) problem_ = "the property list is nested too deeply";
    spend(kCostOfValue);
    if (!problem_.empty()) return out;
    if ([object isKindOfClass:[NSString class]]) {
      out.value = text((NSString*)object);
    } else if ([object isKindOfClass:[NSArray class]]) {
      PlistArray& items = out.value.emplace<PlistArray>();
      for (id item in (NSArray*)object) items.push_back(copy(item, depth + 1));
    } else if ([object isKindOfClass:[NSDictionary class]]) {
      NSDictionary<NSString*, id>* dictionary = object;
      PlistDict& entries = out.value.emplace<PlistDict>();
      for (NSString* key in dictionary) {
        entries.insert_or_assign(text(key), copy(dictionary[key], depth + 1));
      }
    }
    return out;
  }

 private:
  void spend(std::size_t cost) {
    cost_ += cost;
    if (cost_ > kMaxCost) problem_ = "the property list is too large";
  }

  std::string text(NSString* _Nonnull string) {
    std::string copied = to_string(string);
    spend(copied.size());
    return copied;
  }

  std::size_t cost_ = 0;
  std::string problem_;
};

}  // namespace

Plist parse_plist(std::span<const std::byte> bytes) {
  Plist root;
  const auto parse = [&]() -> Failure {
    NSError* error = nil;
    id parsed = [NSPropertyListSerialization
        propertyListWithData:[NSData dataWithBytes:bytes.data() length:bytes.size()]
                     options:NSPropertyListImmutable
                      format:nullptr
                       error:&error];
    if (parsed == nil) {
      const std::string reason = to_string(error.localizedDescription);
      return {"not a property list" + (reason.empty() ? "" : ": " + reason)};
    }
    TreeCopier copier;
    root = copier.copy(parsed);
    return {copier.problem()};
  };
  guarded("reading a property list", parse, "Foundation");
  return root;
}

}  // namespace nnbt
