// The list of a user's addresses: what is looked for, in which order, and which part of it one page shows. Pure.

import Foundation
import InternetMessage
import Support

/// What is to be said of an account in a list.
package enum AddressState: String, Sendable, CaseIterable {
    /// Mail comes.
    case on
    /// The user turned forwarding off.
    case off
    /// Apps have consent, and no relay address.
    case open
    /// Its app moved to another team.
    case moved
    /// The user stopped using every app of the team.
    case ended
}

/// An account in the list.
package struct AddressListItem: Sendable, Hashable {
    /// The store's own number.
    package let account: Int64
    /// The name of the team.
    package let team: String
    package let address: AddrSpec?
    package let state: AddressState
    /// As the user calls it; empty where they do not.
    package let ownName: String
    package let note: String
    /// Names of the apps that have consent.
    package let apps: [String]
    /// Seconds since 1970.
    package let createdAt: Int64

    package init(
        account: Int64, team: String, address: AddrSpec?, state: AddressState, ownName: String, note: String, apps: [String],
        createdAt: Int64
    ) {
        (self.account, self.team, self.address, self.state) = (account, team, address, state)
        (self.ownName, self.note, self.apps, self.createdAt) = (ownName, note, apps, createdAt)
    }

    /// What it stands under in the list.
    package var title: String { ownName.isEmpty ? team : ownName }
}

/// What a user wants to see of the list.
package struct AddressListQuery: Sendable, Hashable {
    package enum Order: String, Sendable, CaseIterable {
        /// As the language sorts, numbers by value.
        case name
        /// The newest first.
        case newest
    }

    /// Words, all of which an address has to have somewhere.
    package var search: String
    /// Nil for all.
    package var state: AddressState?
    package var order: Order
    /// From 1.
    package var page: Int

    /// Characters of what is looked for; what is beyond is left out.
    package static let maximumSearch = 100

    package init(search: String = "", state: AddressState? = nil, order: Order = .name, page: Int = 1) {
        self.search = String(search.split(whereSeparator: \.isWhitespace).joined(separator: " ").prefix(Self.maximumSearch))
        self.state = state
        self.order = order
        self.page = max(page, 1)
    }
}

/// One page of the list.
package struct AddressListPage: Sendable, Hashable {
    /// Of one page.
    package static let size = 25

    /// Those that mail can come to first, then by state.
    package let items: [AddressListItem]
    /// How many there are of each state, found by the words that were looked for.
    package let counts: [AddressState: Int]
    /// How many there are of the state that was asked for.
    package let found: Int
    /// The page that this is: the last one where a later one was asked for.
    package let page: Int
    package let pages: Int

    /// - Parameter language: RFC 5646, whose order counts.
    package init(_ all: [AddressListItem], _ query: AddressListQuery, language: String) {
        let words = Self.folded(query.search).split(separator: " ")
        let matching = words.isEmpty ? all : all.filter { Self.matches($0, words) }
        counts = matching.reduce(into: [:]) { $0[$1.state, default: 0] += 1 }
        let chosen = query.state.map { state in matching.filter { $0.state == state } } ?? matching
        found = chosen.count
        pages = max((chosen.count + Self.size - 1) / Self.size, 1)
        page = min(query.page, pages)
        let range = (page - 1) * Self.size..<min(page * Self.size, chosen.count)
        let locale = Locale(identifier: language)
        items = chosen.ordered(in: range) { Self.precedes($0, $1, query.order, locale) }
    }

    /// Characters of a word that is looked for in the address too: shorter ones are in many, by chance.
    private static let addressWord = 5

    private static func folded(_ text: String) -> String {
        text.folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
    }

    private static func matches(_ item: AddressListItem, _ words: [Substring]) -> Bool {
        let text = folded(([item.team, item.ownName, item.note] + item.apps).joined(separator: "\n"))
        let address = item.address?.wireForm ?? ""
        return words.allSatisfy { text.contains($0) || $0.count >= addressWord && address.contains($0) }
    }

    private static func rank(_ state: AddressState) -> Int {
        switch state {
        case .on, .off: 0
        case .open: 1
        case .moved: 2
        case .ended: 3
        }
    }

    static func precedes(
        _ one: AddressListItem, _ other: AddressListItem, _ order: AddressListQuery.Order, _ locale: Locale
    ) -> Bool {
        if rank(one.state) != rank(other.state) { return rank(one.state) < rank(other.state) }
        switch order {
        case .newest where one.createdAt != other.createdAt: return one.createdAt > other.createdAt
        case .name:
            let result = one.title.compare(other.title, options: [.caseInsensitive, .numeric], range: nil, locale: locale)
            if result != .orderedSame { return result == .orderedAscending }
        default: break
        }
        return one.account < other.account
    }
}

extension Array {
    /// What is in this range once everything is in order. Only as much is sorted as that takes: to compare names as a language
    /// does is slow, and one page of ten thousand is wanted.
    func ordered(in range: Range<Int>, by precedes: (Element, Element) -> Bool) -> [Element] {
        var rest = self
        var wanted = range
        while !wanted.isEmpty, rest.count > 2 * wanted.count + 16 {
            // The middle one of three, so that what is sorted already is not the worst case.
            let pivot = [rest[0], rest[rest.count / 2], rest[rest.count - 1]].sorted(by: precedes)[1]
            let before = rest.filter { precedes($0, pivot) }
            if wanted.upperBound <= before.count {
                rest = before
            } else if wanted.lowerBound >= before.count, !before.isEmpty {
                rest = rest.filter { !precedes($0, pivot) }
                wanted = wanted.lowerBound - before.count..<wanted.upperBound - before.count
            } else {
                break
            }
        }
        return wanted.isEmpty ? [] : [Element](rest.sorted(by: precedes)[wanted])
    }
}
