// The list of relay addresses: search results, page by page.

import Accounts
import Hummingbird
import PersonalData
import SignIn
import Support

/// The list of relay addresses, by state.
struct AddressListView: PageView {
    struct State: Sendable {
        let title: String
        let count: String
        let path: String
        let isCurrent: Bool
    }

    /// The search.
    struct Tools: Sendable {
        let search: String
        let state: String?
        let isNewestFirst: Bool
        let states: [State]
    }

    /// Links to the pages before and after this one.
    struct Neighbours: Sendable {
        let page: String
        let pages: String
        let previous: String?
        let next: String?
    }

    static let template = PageTemplate.overview
    static let hasScript = true
    /// The default inbox; nil if none is confirmed.
    let inbox: String?
    /// Whether an address shown has another inbox.
    let hasOthers: Bool
    /// Whether the user has no address at all.
    let isEmpty: Bool
    /// Whether the search found none.
    let hasNone: Bool
    let tools: Tools?
    let active: [AddressCard]
    let open: [AddressCard]
    let moved: [AddressCard]
    let ended: [AddressCard]
    let neighbours: Neighbours?
    /// Where a form of this page leads back to.
    let back: String
}

extension PortalPage {
    /// The search appears beyond this many addresses.
    private static let searchedFrom = 8

    func overview(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let query = Self.query(request)
        let (time, language) = (now(), request.language.tag)
        let (page, total) = try await pool.run {
            let all = try store.persons.addresses(user: session.userID, now: time)
            return (AddressListPage(all, query, language: language), all.count)
        }
        let accounts = try await accounts(session, page.items.map(\.account))
            .reduce(into: [Int64: UserExportAccount]()) { $0[$1.number] = $1 }
        let inboxes = try await pool.run { try store.inboxes.inboxes(user: session.userID) }
        func cards(_ states: Set<AddressState>) -> [AddressCard] {
            page.items.filter { states.contains($0.state) }.compactMap { item in
                accounts[item.account].map { card($0, inboxes: inboxes, request.words) }
            }
        }
        let active = cards([.on, .off])
        let inbox = inboxes.first { $0.isDefault && $0.isVerified }
        let view = AddressListView(
            inbox: inbox.map { PortalText.address($0.address) },
            hasOthers: inbox != nil && active.contains { $0.otherInbox != nil }, isEmpty: total == 0,
            hasNone: total > 0 && page.found == 0,
            tools: total > Self.searchedFrom || query != AddressListQuery() ? Self.tools(page, query, request.words) : nil,
            active: active, open: cards([.open]), moved: cards([.moved]), ended: cards([.ended]),
            neighbours: Self.neighbours(page, query, request.words), back: Self.path(query))
        // The action may have removed it from this page.
        var told = accounts[request.toldOf ?? 0]?.title
        if told == nil, let number = request.toldOf { told = try await self.accounts(session, [number]).first?.title }
        return try request.html(view, title: request.language.text("Your addresses"), notice: notice(request, told))
    }

    // MARK: The search

    private static func query(_ request: PortalRequest) -> AddressListQuery {
        AddressListQuery(
            search: request.query("search")?.text ?? "", state: (request.query("state")?.text).flatMap(AddressState.init),
            order: (request.query("order")?.text).flatMap(AddressListQuery.Order.init) ?? .name,
            page: request.query("page").flatMap(\.integer).flatMap(Int.init(exactly:)) ?? 1)
    }

    /// The path of this list.
    static func path(_ query: AddressListQuery) -> String {
        var pairs: [(name: String, value: String)] = []
        if !query.search.isEmpty { pairs.append(("search", query.search)) }
        if let state = query.state { pairs.append(("state", state.rawValue)) }
        if query.order != .name { pairs.append(("order", query.order.rawValue)) }
        if query.page > 1 { pairs.append(("page", String(query.page))) }
        return pairs.isEmpty ? "/me" : "/me?\(FormEncoding.encode(pairs))"
    }

    /// The same from the hidden field of a form: accepts only paths that this page could have written.
    static func listPath(_ text: String?) -> String? {
        guard let text, text == "/me" || text.hasPrefix("/me?"), text.utf8.count <= 2_000,
            let pairs = FormEncoding.pairs(text.utf8.dropFirst("/me?".utf8.count), maximum: 4)
        else { return nil }
        func value(_ name: WireText) -> String? { pairs.first { $0.name == name }?.value.text }
        return path(
            AddressListQuery(
                search: value("search") ?? "", state: value("state").flatMap(AddressState.init),
                order: value("order").flatMap(AddressListQuery.Order.init) ?? .name, page: value("page").flatMap(Int.init) ?? 1))
    }

    private static func tools(
        _ page: AddressListPage, _ query: AddressListQuery, _ words: PortalText
    ) -> AddressListView.Tools {
        let all = page.counts.values.reduce(0, +)
        let language = words.language
        let titles: [(AddressState?, String)] = [
            (nil, language.text("All")), (.on, language.text("On")), (.off, language.text("Off")),
            (.open, language.text("Without a relay address")), (.moved, language.text("Moved")),
            (.ended, language.text("No longer in use")),
        ]
        let states = titles.compactMap { state, title -> AddressListView.State? in
            let count = state.map { page.counts[$0] ?? 0 } ?? all
            guard state == nil || count > 0 || state == query.state else { return nil }
            var other = query
            (other.state, other.page) = (state, 1)
            return AddressListView.State(
                title: title, count: words.number(count), path: path(other), isCurrent: state == query.state)
        }
        return AddressListView.Tools(
            search: query.search, state: query.state?.rawValue, isNewestFirst: query.order == .newest, states: states)
    }

    /// Links to the neighbouring pages; nil if there is only one page.
    private static func neighbours(
        _ page: AddressListPage, _ query: AddressListQuery, _ words: PortalText
    ) -> AddressListView.Neighbours? {
        guard page.pages > 1 else { return nil }
        func other(_ number: Int) -> String? {
            guard (1...page.pages).contains(number) else { return nil }
            var other = query
            other.page = number
            return path(other)
        }
        return AddressListView.Neighbours(
            page: words.number(page.page), pages: words.number(page.pages), previous: other(page.page - 1),
            next: other(page.page + 1))
    }

    /// What was just done.
    /// - Parameter title: the title of the address concerned.
    func notice(_ request: PortalRequest, _ title: String?) -> String? {
        let text: String? =
            switch request.told {
            case "on": request.language.text("Forwarding is on: mail to this address reaches you again.")
            case "off":
                request.language.text("Forwarding is off: mail to this address is refused, and its sender is notified.")
            case "stopped": request.language.text("You have stopped using the app.")
            case "noted": request.language.text("Saved.")
            case "replaced": request.language.text("This is your new address. The old one no longer works.")
            case "blocked": request.language.text("Mail from there is refused from now on.")
            case "objected": request.language.text("Your objection is noted.")
            case "unblocked": request.language.text("Mail from there comes through again.")
            case "led": request.language.text("From now on mail to this address goes to the inbox you chose.")
            default: nil
            }
        return text.map { text in title.map { "\($0) – \(text)" } ?? text }
    }
}
