// The list of a user's addresses: the search, the order, and the part shown on one page. Pure.

import Foundation
import InternetMessage
import Support

/// The state of an account in a list.
package enum AddressState: String, Sendable, CaseIterable {
    /// Mail is forwarded.
    case on
    /// Forwarding is off.
    case off
    /// Forwarding is on, but the user blocks every sender of the team.
    case blocked
    /// Apps have consent, but there is no relay address.
    case open
    /// Its app moved to another team.
    case moved
    /// The user stopped using every app of the team.
    case ended
}

/// The filters of a list.
package enum AddressFilter: Sendable, Hashable, CaseIterable {
    case state(AddressState)
    /// Mail was refused in the past seven days.
    case refused
    /// Others than the team are proved to have used it in the past 30 days.
    case usedByOthers

    package static let allCases: [AddressFilter] =
        AddressState.allCases.map(AddressFilter.state) + [.refused, .usedByOthers]

    /// As in the address of a list.
    package var name: String {
        switch self {
        case .state(let state): state.rawValue
        case .refused: "refused"
        case .usedByOthers: "used-by-others"
        }
    }

    package init?(name: String) {
        guard let filter = Self.allCases.first(where: { $0.name.hasSameOctets(as: name) }) else {
            return nil
        }
        self = filter
    }

    func includes(_ item: AddressListItem) -> Bool {
        switch self {
        case .state(let state): item.state == state
        case .refused: item.refusedOfWeek > 0
        case .usedByOthers: item.usingDomains > 0
        }
    }
}

/// An account in the list.
package struct AddressListItem: Sendable, Hashable {
    /// The store's number.
    package let account: Int64
    /// The name of the team.
    package let team: String
    package let address: AddrSpec?
    package let state: AddressState
    /// The user's own name for it; empty if none.
    package let ownName: String
    package let note: String
    /// Names of the apps that have consent.
    package let apps: [String]
    /// Seconds since 1970.
    package let createdAt: Int64
    /// When a message was last relayed, seconds since 1970, perhaps to the day; 0 for never.
    package let activeAt: Int64
    /// Messages that were refused in the past seven days.
    package let refusedOfWeek: Int
    /// Domains other than the team's that are proved to have used it in the past 30 days.
    package let usingDomains: Int

    package init(
        account: Int64, team: String, address: AddrSpec?, state: AddressState, ownName: String,
        note: String, apps: [String],
        createdAt: Int64, activeAt: Int64 = 0, refusedOfWeek: Int = 0, usingDomains: Int = 0
    ) {
        (self.account, self.team, self.address, self.state) = (account, team, address, state)
        (self.ownName, self.note, self.apps, self.createdAt) = (ownName, note, apps, createdAt)
        (self.activeAt, self.refusedOfWeek) = (activeAt, refusedOfWeek)
        self.usingDomains = usingDomains
    }

    /// Its heading in the list.
    package var title: String { ownName.isEmpty ? team : ownName }
}

/// A user's search in the list.
package struct AddressListQuery: Sendable, Hashable {
    package enum Order: String, Sendable, CaseIterable {
        /// In the language's order, numbers by value.
        case name
        /// The newest first.
        case newest
        /// Those with the latest mail first.
        case active
    }

    /// Words; an address matches if it contains all of them.
    package var search: String
    /// Nil for all.
    package var filter: AddressFilter?
    package var order: Order
    /// From 1.
    package var page: Int

    /// The most characters of a search; the rest is ignored.
    package static let maximumSearch = 100

    package init(
        search: String = "", filter: AddressFilter? = nil, order: Order = .name, page: Int = 1
    ) {
        self.search = String(
            search.split(whereSeparator: \.isWhitespace).joined(separator: " ").prefix(
                Self.maximumSearch))
        self.filter = filter
        self.order = order
        self.page = max(page, 1)
    }
}

/// One page of the list.
package struct AddressListPage: Sendable, Hashable {
    /// Items on one page.
    package static let size = 25

    /// Addresses that can receive mail first, then by state.
    package let items: [AddressListItem]
    /// The number of search results that each filter leaves.
    package let counts: [AddressFilter: Int]
    /// The number of search results.
    package let matched: Int
    /// The number of results that the requested filter leaves.
    package let found: Int
    /// The number of this page: the last one if a later one was requested.
    package let page: Int
    package let pages: Int

    /// - Parameter language: an RFC 5646 tag, which determines the order.
    package init(_ all: [AddressListItem], _ query: AddressListQuery, language: String) {
        let words = Self.folded(query.search).split(separator: " ")
        let matching = words.isEmpty ? all : all.filter { Self.matches($0, words) }
        matched = matching.count
        counts = AddressFilter.allCases.reduce(into: [:]) { counts, filter in
            counts[filter] = matching.count(where: filter.includes)
        }
        let chosen = query.filter.map { matching.filter($0.includes) } ?? matching
        found = chosen.count
        pages = max((chosen.count + Self.size - 1) / Self.size, 1)
        page = min(query.page, pages)
        let range = (page - 1) * Self.size..<min(page * Self.size, chosen.count)
        let locale = Locale(identifier: language)
        items = chosen.ordered(in: range) { Self.precedes($0, $1, query.order, locale) }
    }

    /// Words of at least this length are searched in the address too. Shorter ones match many
    /// addresses by chance.
    private static let addressWord = 5

    private static func folded(_ text: String) -> String {
        text.folding(
            options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
    }

    private static func matches(_ item: AddressListItem, _ words: [Substring]) -> Bool {
        let text = folded(
            ([item.team, item.ownName, item.note] + item.apps).joined(separator: "\n"))
        let address = item.address?.wireForm ?? ""
        return words.allSatisfy {
            text.contains($0) || $0.count >= addressWord && address.contains($0)
        }
    }

    private static func rank(_ state: AddressState) -> Int {
        switch state {
        case .on, .off, .blocked: 0
        case .open: 1
        case .moved: 2
        case .ended: 3
        }
    }

    static func precedes(
        _ one: AddressListItem, _ other: AddressListItem, _ order: AddressListQuery.Order,
        _ locale: Locale
    ) -> Bool {
        if rank(one.state) != rank(other.state) { return rank(one.state) < rank(other.state) }
        switch order {
        case .newest where one.createdAt != other.createdAt: return one.createdAt > other.createdAt
        case .active where one.activeAt != other.activeAt: return one.activeAt > other.activeAt
        case .name:
            let result = one.title.compare(
                other.title, options: [.caseInsensitive, .numeric], range: nil, locale: locale)
            if result != .orderedSame { return result == .orderedAscending }
        default: break
        }
        return one.account < other.account
    }
}

extension Array {
    /// The elements in this range of the sorted order. Sorts only as much as needed: comparing
    /// names in a language's order is slow, and only one page of ten thousand is needed.
    func ordered(in range: Range<Int>, by precedes: (Element, Element) -> Bool) -> [Element] {
        var rest = self
        var wanted = range
        while !wanted.isEmpty, rest.count > 2 * wanted.count + 16 {
            // The median of three, so that sorted input is not the worst case.
            let pivot = [rest[0], rest[rest.count / 2], rest[rest.count - 1]].sorted(by: precedes)[
                1]
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
