// A policy's list in two forms: a set for `in`, and an ordered list for everything else.

import Synchronization

/// A named list of distinct strings. A string that is an address range in CIDR notation
/// matches all its addresses.
package final class StringList: Sendable {
    /// As written.
    package let members: Set<ExactString>
    private let ranges: AddressRanges?
    /// Whether every member is an address or a range.
    package let hasOnlyRanges: Bool
    private let ordered = Mutex<[CELValue]?>(nil)

    package init(_ members: Set<ExactString>) {
        self.members = members
        ranges = AddressRanges(members.lazy.map(\.text))
        hasOnlyRanges =
            !members.isEmpty
            && members.allSatisfy { CELAddress($0.text) != nil || CELNetwork($0.text) != nil }
    }

    /// The result of `in`: whether the text is a member, or an address or range inside a member
    /// that is a range.
    package func contains(_ text: String) -> Bool {
        // Every member that is an address or a range is also in `ranges`.
        ranges?.contain(text) ?? members.contains(ExactString(text))
    }

    /// Number of members.
    package var count: Int { members.count }

    /// All members in code-point order. Sorted on first use; a loader triggers this, so
    /// that no decision waits for it.
    var elements: [CELValue] {
        ordered.withLock { ordered in
            if let ordered { return ordered }
            let sorted = members.map(\.text).sorted(by: precedesByCodePoint).map(CELValue.string)
            ordered = sorted
            return sorted
        }
    }
}

extension ResolvedExpression {
    /// Sorts the lists that this expression reads in other ways than by `in`.
    package func prepareLists() {
        visit { node in
            for child in node.children {
                guard case .stringSet(let list) = child.kind else { continue }
                if case .binary(.in, _, let right) = node.kind, right === child { continue }
                _ = list.elements
            }
        }
    }
}
