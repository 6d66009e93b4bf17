// A policy's list in both of its forms: a set for `in`, and a list in one order for everything else.

import Synchronization

/// A named list of distinct strings. One that is a range of addresses in CIDR notation means all of them.
package final class StringList: Sendable {
    /// As written.
    package let members: Set<ExactString>
    private let ranges: AddressRanges?
    private let ordered = Mutex<[CELValue]?>(nil)

    package init(_ members: Set<ExactString>) {
        self.members = members
        ranges = AddressRanges(members.lazy.map(\.text))
    }

    /// What `in` asks: whether the text is a member, or an address or range within one that is a range.
    package func contains(_ text: String) -> Bool {
        // Every member that is an address or a range is among the ranges.
        ranges?.contain(text) ?? members.contains(ExactString(text))
    }

    /// How many.
    package var count: Int { members.count }

    /// All of them in code-point order. Sorted the first time, which a loader brings about: a decision must not wait for it.
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
    /// Sorts the lists that this expression reads otherwise than by `in`.
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
