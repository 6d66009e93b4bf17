// Every route with every kind of key: nothing of another team is found, and the
// description names every route.

import API
import Accounts
import Decisions
import Foundation
import HTTP
import HTTPTypes
import InternetMessage
import PolicyRules
import RelayCore
import RiskPolicy
import StoreTesting
import TestSupport
import Testing
import Yams

@Suite(.blocking) struct WalkTests {
    /// The data of team `juice` that must reach no other team.
    private struct Marks {
        let words: [String]
        /// The values for `{name}` in paths.
        let parameters: [String: String]
        let address: String
    }

    private func world(_ serving: ServingFixture) throws -> Marks {
        let fixture = serving.fixture
        let address = try fixture.address(
            user: "jane-of-juice", team: "juice", inbox: "jane.marker@home.example")
        _ = try fixture.store.sources.add(
            team: "juice",
            try fixture.store.sources.checked(
                "marker-juice.example", envelopeDomain: nil, now: APIFixture.start),
            APIFixture.change)
        try fixture.store.rejections.add([
            RefusedForward(
                at: APIFixture.start,
                attribution: ForwardAttribution(
                    author: try AddrSpec.typed("a@marker-juice.example"),
                    account: try #require(AccountNumber(UInt64(address.account.number))),
                    isRegistered: true),
                reply: .proofFailed, reference: "markerref")
        ])
        let inbox = try #require(
            try fixture.store.inboxes.inboxes(user: "jane-of-juice").first?.number)
        return Marks(
            words: [
                address.address.localPart, address.account.sub, "jane-of-juice", "jane.marker",
                "marker-juice", "markerref",
                "The Juice",
            ],
            parameters: [
                "user": "jane-of-juice", "inbox": "\(inbox)", "sub": address.account.sub,
                "address": address.address.wireForm,
            ],
            address: address.address.wireForm)
    }

    private func path(_ entry: RouteEntry, _ marks: Marks) -> String {
        entry.path.split(separator: "/").map { part in
            part.hasPrefix("{")
                ? marks.parameters[String(part.dropFirst().dropLast())] ?? "1" : String(part)
        }.reduce("") { $0 + "/" + $1 }
    }

    /// The example in the description, with juice's own values.
    private func body(_ entry: RouteEntry, _ document: Description, _ marks: Marks) -> String? {
        guard [.post, .put, .patch].contains(entry.method) else { return nil }
        return (document.example(entry.method, entry.path) ?? "{}").replacing(
            "x7k2m9q4wd@relay.example", with: marks.address
        )
        .replacing("juice.example", with: "marker-juice.example").replacing(
            "\"jane\"", with: "\"jane-of-juice\"")
    }

    private func walked(_ routes: [RouteEntry]) -> [RouteEntry] {
        routes.filter { ![.open, .user].contains($0.access) }
    }

    @Test func routes_withoutValidKey_are401() async throws {
        let serving = try ServingFixture()
        let (fixture, document, marks) = (serving.fixture, try Description(), try world(serving))
        let expired = try fixture.key("juice", expiresAt: APIFixture.start + 1)
        let revoked = try fixture.key("juice")
        for key in try fixture.store.apiKeys.keys() where key.expiresAt == nil {
            _ = try fixture.store.apiKeys.revoke(key.id, APIFixture.change)
        }
        try fixture.keys.refresh()
        fixture.wait(seconds: 1)
        let routes = walked(fixture.routes)
        #expect(routes.count >= 15)
        for entry in routes {
            for key in [nil, "nonsense", expired, revoked] {
                let answer = try await fixture.ask(
                    entry.method, path(entry, marks), key: key, body: body(entry, document, marks))
                #expect(answer.status == 401, "\(entry.method) \(entry.path)")
                #expect(answer.problem == "unauthorized")
                for word in marks.words { #expect(!answer.text.contains(word)) }
            }
        }
    }

    @Test func routes_missingScopeOrWrongKeyKind_are403() async throws {
        let serving = try ServingFixture()
        let (fixture, document, marks) = (serving.fixture, try Description(), try world(serving))
        for entry in walked(fixture.routes) {
            let (needed, wrongKind): (Scope, String?) =
                switch entry.access {
                case .team(let scope): (scope, try fixture.key(nil))
                case .operator(let scope): (scope, try fixture.key("juice"))
                case .either(let scope): (scope, nil)
                case .open, .user: (.sourcesRead, nil)
                }
            let owners = Scope.all.first { $0.scope == needed }?.owners ?? []
            #expect(
                !owners.isEmpty, "\(entry.path) needs \(needed.rawValue), which no key can have")
            let keys = try owners.map { owner in
                try fixture.key(
                    owner == .team ? "juice" : nil,
                    Scope.available(to: owner).filter { !$0.grants(needed) })
            }
            for key in keys + [wrongKind].compactMap({ $0 }) {
                let answer = try await fixture.ask(
                    entry.method, path(entry, marks), key: key, body: body(entry, document, marks))
                #expect(answer.status == 403, "\(entry.method) \(entry.path): \(answer.status)")
                for word in marks.words { #expect(!answer.text.contains(word)) }
            }
        }
    }

    @Test func routes_keyOfAnotherTeam_findAndChangeNothing() async throws {
        let serving = try ServingFixture()
        let (fixture, document, marks) = (serving.fixture, try Description(), try world(serving))
        let soda = try fixture.key("soda")
        func state() throws -> String {
            let (accounts, addresses) = (
                try fixture.store.accountList.accounts(team: nil, limit: 100),
                try fixture.store.addresses.addresses()
            )
            return
                "\(accounts) \(addresses) \(try fixture.store.users.all()) \(try fixture.store.sources.sources(team: "juice"))"
        }
        let before = try state()
        for entry in walked(fixture.routes) {
            let sent = body(entry, document, marks)
            let asked = path(entry, marks)
            let answer = try await fixture.ask(entry.method, asked, key: soda, body: sent)
            // The answer may repeat the values of the request, but nothing else of juice.
            for word in marks.words where !(sent ?? "").contains(word) && !asked.contains(word) {
                #expect(
                    !answer.text.contains(word),
                    "\(entry.method) \(entry.path) shows \(word): \(answer.text)")
            }
            // The same request with values that never existed.
            func estranged(_ text: String) -> String {
                marks.words.reduce(text) {
                    $0.replacing($1, with: String(repeating: "q", count: $1.count))
                }
            }
            guard sent.map({ estranged($0) != $0 }) ?? (estranged(asked) != asked) else { continue }
            let stranger = try await fixture.ask(
                entry.method, estranged(asked), key: soda, body: sent.map(estranged))
            #expect(answer.status == stranger.status, "\(entry.method) \(entry.path)")
            #expect(
                withoutIDs(estranged(answer.text)) == withoutIDs(estranged(stranger.text)),
                "\(entry.method) \(entry.path)")
        }
        #expect(try state() == before)
    }

    /// Request ids, creation times and tokens differ between answers.
    private func withoutIDs(_ text: String) -> String {
        text.replacing(#/"(request_id|decision_id|created_at|id|checked_at)":"[^"]*"/#, with: "")
            .replacing(#/"value":"[a-z0-9]{32}"/#, with: "")
    }

    // MARK: The audit

    /// Tables whose changes have no line in the audit, each with its reason.
    private static let unaudited: [(table: String, reason: String)] = [
        ("audit", "it is the audit"), ("idempotency_keys", "an answer that is kept for a day"),
        ("decisions", "a log of its own"),
        ("attestation_challenges", "asked for by an app, gone in minutes"),
        ("used_nonces", "a nonce that served once"),
    ]

    /// The rows of every other table.
    private func state(_ fixture: APIFixture) throws -> [String: String] {
        try fixture.store.database.rows(without: Self.unaudited.map(\.table))
    }

    /// Each change with a key, and each view of an inbox, is in the audit.
    @Test func routes_thatChangeOrRevealSomething_leaveALine() async throws {
        let serving = try ServingFixture()
        let (fixture, document) = (serving.fixture, try Description())
        let made = try world(serving)
        for app in ["com.example.app", "com.example.juice", "example.juice.app"] {
            _ = try fixture.store.apps.add(
                team: "juice", clientID: app, group: nil, APIFixture.change)
        }
        let marks = Marks(
            words: made.words,
            parameters: made.parameters.merging([
                "client_id": "com.example.juice", "name": "bad_networks",
            ]) { $1 },
            address: made.address)
        let keys = [try fixture.key("juice"), try fixture.key(nil)]
        var changed = Set<String>()
        func lines() throws -> Int64 {
            try fixture.store.database.value("SELECT COUNT(*) FROM audit") ?? 0
        }
        // Requests that delete come last.
        let routes = walked(fixture.routes)
        let ordered =
            routes.filter { $0.method != .delete } + routes.filter { $0.method == .delete }
        for entry in ordered {
            for key in keys {
                let (before, count) = (try state(fixture), try lines())
                let answer = try await fixture.ask(
                    entry.method, path(entry, marks), key: key, body: body(entry, document, marks))
                guard (200..<300).contains(answer.status) else { continue }
                let after = try state(fixture)
                let tables = after.keys.filter { after[$0] != before[$0] }.sorted()
                let reveals = answer.text.contains("jane.marker@home.example")
                guard !tables.isEmpty || reveals else { continue }
                changed.insert("\(entry.method) \(entry.path)")
                #expect(
                    try lines() > count,
                    "\(entry.method) \(entry.path): \(tables) changed, and no line says who did it")
            }
        }
        #expect(changed.count >= 19, "\(changed.sorted())")
    }

    @Test func openAPI_paths_nameEveryRouteAndNoOther() throws {
        let document = try Description()
        let served = try ServingFixture().fixture.routes.filter {
            !Description.isElsewhere($0.path)
        }
        #expect(Set(served.map { "\($0.method.rawValue) \($0.path)" }) == document.operations)
    }

    @Test func openAPI_served_equalsDocs() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent()
        let written = try Data(contentsOf: root.appendingPathComponent("docs/openapi.yaml"))
        #expect(
            Data(OpenAPIRoutes.document.utf8) == written,
            "Sources/API/openapi.yaml is a link to docs/openapi.yaml")
    }

    @Test func routes_paths_takeNoInbox() throws {
        for entry in try ServingFixture().fixture.routes {
            #expect(!entry.path.contains("{email}") && !entry.path.contains("{address}"))
        }
    }
}

@Suite(.blocking) struct EnumerationTests {
    @Test func openAPI_enumerations_listEveryValue() throws {
        let description = try Description()
        let policy = try PolicyDocument(files: DefaultPolicy.files).policy(options: .onThisMachine)
        #expect(try description.values("Challenge") == Set(policy.challenges.map(\.kind)))
        // Rules that span teams are never named.
        let reasons = policy.rules.filter { !$0.spansTeams }.map(\.reason)
        #expect(
            try description.values("ReasonCode")
                == Set(
                    reasons + BuiltInReason.all + [
                        BuiltInReason.accountHistory, UpgradeResult.failureReason,
                    ]))
        #expect(
            try description.values("UpgradeResult")
                == [UpgradeResult.success, UpgradeResult.twoFactorRequired, UpgradeResult.failure])
        #expect(
            try description.values("CredentialStateName")
                == Set(CredentialState.allCases.map(\.rawValue)))
        #expect(try description.values("EventName") == Set(PolicyEvent.allCases.map(\.rawValue)))
        #expect(try description.values("EventType") == Set(EventType.allCases.map(\.rawValue)))
        #expect(
            try description.values("AddressReason")
                == Set(AddressReason.allCases.map(\.code.rawValue)))
    }
}

/// docs/openapi.yaml as the program serves it.
struct Description {
    private let paths: [String: Any]
    private let schemas: [String: Any]

    init() throws {
        let text = OpenAPIRoutes.document
        let root = try #require(try Yams.load(yaml: text) as? [String: Any])
        #expect(root["openapi"] as? String == "3.1.0")
        paths = try #require(root["paths"] as? [String: Any])
        schemas = try #require((root["components"] as? [String: Any])?["schemas"] as? [String: Any])
    }

    /// The values that a schema lists.
    func values(_ schema: String) throws -> Set<String> {
        let schema = try #require(schemas[schema] as? [String: Any])
        let listing = (schema["anyOf"] as? [[String: Any]])?.first ?? schema
        return Set(try #require(listing["enum"] as? [String]))
    }

    /// Pages for people are not part of the API.
    static func isElsewhere(_ path: String) -> Bool { path == "/me" || path.hasPrefix("/me/") }

    /// As in `GET /v1/users/{user}`.
    var operations: Set<String> {
        var found: Set<String> = []
        for (path, value) in paths {
            for method in ["get", "post", "put", "patch", "delete"]
            where (value as? [String: Any])?[method] != nil {
                found.insert("\(method.uppercased()) \(path)")
            }
        }
        return found
    }

    /// The example of a JSON body, as JSON.
    func example(_ method: HTTPRequest.Method, _ path: String) -> String? {
        let operation =
            (paths[path] as? [String: Any])?[method.rawValue.lowercased()] as? [String: Any]
        let content = (operation?["requestBody"] as? [String: Any])?["content"] as? [String: Any]
        let json = content?["application/json"] as? [String: Any]
        let example =
            json?["example"]
            ?? ((json?["examples"] as? [String: Any])?.values.first as? [String: Any])?["value"]
        guard let example,
            let data = try? JSONSerialization.data(
                withJSONObject: example, options: [.sortedKeys, .withoutEscapingSlashes])
        else { return nil }
        return String(decoding: data, as: UTF8.self)
    }
}
