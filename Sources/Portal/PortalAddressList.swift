// The list of relay addresses: search results, page by page.

import Accounts
import Hummingbird
import Languages
import PersonalData
import SignIn
import Support

/// The list of relay addresses, by state.
struct AddressListView: PageView {
    struct Filter: Sendable {
        let title: String
        let count: String
        let path: String
        let isCurrent: Bool
    }

    struct Order: Sendable {
        let name: String
        let title: String
        let isChosen: Bool
    }

    /// The search.
    struct Tools: Sendable {
        let search: String
        /// As in the address.
        let filter: String?
        let orders: [Order]
        let filters: [Filter]
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
    /// Whether forwarding of several addresses can be switched at once.
    let several: Bool
    /// The page to which a form of this page leads back.
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
                accounts[item.account].map {
                    card(
                        $0, inboxes: inboxes, told: request.notice(.forwarding, of: $0.number),
                        request.words)
                }
            }
        }
        let active = cards([.on, .off, .blocked])
        let inbox = inboxes.first { $0.isDefault && $0.isVerified }
        let view = AddressListView(
            inbox: inbox.map { PortalText.address($0.address) },
            hasOthers: inbox != nil && active.contains { $0.otherInbox != nil },
            isEmpty: total == 0,
            hasNone: total > 0 && page.found == 0,
            tools: total > Self.searchedFrom || query != AddressListQuery()
                ? Self.tools(page, query, request.words) : nil,
            active: active, open: cards([.open]), moved: cards([.moved]), ended: cards([.ended]),
            neighbours: Self.neighbours(page, query, request.words), several: active.count > 1,
            back: Self.path(query))
        // The switch may have removed the address from this page.
        var notice = request.notice(.page)
        if let told = request.told, let number = request.toldOf, accounts[number] == nil {
            let title = try await self.accounts(session, [number]).first?.title
            notice = title.map { "\($0) – \(told.text(request.language))" }
        }
        return try request.html(
            view, title: request.language.text("Your addresses"), notice: notice)
    }

    /// Switches forwarding of all ticked addresses, one after the other.
    func switchSeveral(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        guard let state = request.form["state"]?.text, ["on", "off"].contains(state) else {
            throw PortalRefusal.notFound
        }
        let back = Self.listPath(request.form["back"]?.text) ?? "/me"
        let start = "address-"
        let numbers = request.form.names.compactMap { name -> Int64? in
            let text = name.text
            return text.utf8.starts(with: start.utf8)
                ? Int64(text.dropFirst(start.utf8.count)) : nil
        }
        let addresses = try await accounts(session, numbers).filter(\.isActive).compactMap(
            \.address)
        guard !addresses.isEmpty else { return request.redirect(back, told: .noneChosen) }
        let change = Self.change(session, now())
        try await pool.run {
            for address in addresses {
                _ = try store.addresses.setForwarding(address, on: state == "on", by: .user, change)
            }
        }
        return request.redirect(back, told: state == "on" ? .severalOn : .severalOff)
    }

    // MARK: The search

    private static func query(_ request: PortalRequest) -> AddressListQuery {
        AddressListQuery(
            search: request.query("search")?.text ?? "",
            filter: (request.query("state")?.text).flatMap(AddressFilter.init),
            order: (request.query("order")?.text).flatMap(AddressListQuery.Order.init) ?? .name,
            page: request.query("page").flatMap(\.integer).flatMap(Int.init(exactly:)) ?? 1)
    }

    /// The path of this list.
    static func path(_ query: AddressListQuery) -> String {
        var pairs: [(name: String, value: String)] = []
        if !query.search.isEmpty { pairs.append(("search", query.search)) }
        if let filter = query.filter { pairs.append(("state", filter.name)) }
        if query.order != .name { pairs.append(("order", query.order.rawValue)) }
        if query.page > 1 { pairs.append(("page", String(query.page))) }
        return pairs.isEmpty ? "/me" : "/me?\(FormEncoding.encode(pairs))"
    }

    /// The same from the hidden field of a form: accepts only paths that this
    /// page could have written.
    static func listPath(_ text: String?) -> String? {
        guard let text, text == "/me" || text.hasPrefix("/me?"), text.utf8.count <= 2_000,
            let pairs = FormEncoding.pairs(text.utf8.dropFirst("/me?".utf8.count), maximum: 4)
        else { return nil }
        func value(_ name: WireText) -> String? { pairs.first { $0.name == name }?.value.text }
        return path(
            AddressListQuery(
                search: value("search") ?? "", filter: value("state").flatMap(AddressFilter.init),
                order: value("order").flatMap(AddressListQuery.Order.init) ?? .name,
                page: value("page").flatMap(Int.init) ?? 1))
    }

    private static func tools(
        _ page: AddressListPage, _ query: AddressListQuery, _ words: PortalText
    ) -> AddressListView.Tools {
        let language = words.language
        let filters = [nil] + AddressFilter.allCases.map(Optional.init)
        let states = filters.compactMap { filter -> AddressListView.Filter? in
            let count = filter.map { page.counts[$0] ?? 0 } ?? page.matched
            guard filter == nil || count > 0 || filter == query.filter else { return nil }
            var other = query
            (other.filter, other.page) = (filter, 1)
            return AddressListView.Filter(
                title: title(filter, language), count: words.number(count), path: path(other),
                isCurrent: filter == query.filter)
        }
        return AddressListView.Tools(
            search: query.search, filter: query.filter?.name,
            orders: AddressListQuery.Order.allCases.map {
                AddressListView.Order(
                    name: $0.rawValue, title: title($0, language), isChosen: $0 == query.order)
            }, filters: states)
    }

    private static func title(_ filter: AddressFilter?, _ language: Catalogue) -> String {
        switch filter {
        case nil: language.text("All")
        case .state(.on): language.text("On")
        case .state(.off): language.text("Off")
        case .state(.blocked): language.text("Senders blocked")
        case .state(.open): language.text("Without a relay address")
        case .state(.moved): language.text("Moved")
        case .state(.ended): language.text("No longer in use")
        case .refused: language.text("With refused mail")
        case .usedByOthers: language.text("Used by others")
        }
    }

    private static func title(_ order: AddressListQuery.Order, _ language: Catalogue) -> String {
        switch order {
        case .name: language.text("By name")
        case .newest: language.text("Newest first")
        case .active: language.text("Latest mail first")
        }
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
            page: words.number(page.page), pages: words.number(page.pages),
            previous: other(page.page - 1),
            next: other(page.page + 1))
    }
}
