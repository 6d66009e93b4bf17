// Declarations applied on both engines: completely or not at all, once, and as one change in the
// audit.

import Accounts
import Administration
import Database
import Decisions
import Declaration
import Events
import Foundation
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct DeclarationRunTests {
    private static let all = """
        lists:
          tor: {kind: range}
        teams:
          juice:
            name: Juice and More
            sources: [Juice.Example, billing@gmail.example, {source: mail.juice.example, envelope: bounces.mailer.example}]
            policy: risk-default
            lists: {blocked: {kind: domain}}
            apps:
              com.juice.tablet: {group: com.juice, public: true, policy: risk-default}
              com.juice:
                name: Juice
                id_token_algorithm: RS256
                nonce: {form: sha256_hex, required: false}
                redirect_uris: [https://juice.example/in, "com.juice:/in"]
                post_logout_redirect_uris: [https://juice.example/bye]
                endpoint: {url: "http://127.0.0.1:8080/events", allow_http: true, allow_private: true, dialect: apple-2025}
          pear:
            name: Pear
            endpoint: HTTPS://Pear.Example/events
        """

    private static func world(_ engine: Engine) throws -> TestStore {
        let test = try TestStore(engine)
        _ = try test.store.policies.activate(.builtIn, TestStore.change)
        return test
    }

    private static func read(
        _ text: String, _ run: DeclarationRun, _ store: Store
    ) throws -> Declaration {
        var reader = DeclarationReader()
        reader.read(text, name: "teams.yaml")
        try reader.finish()
        let (declaration, faults) = run.normalized(
            reader.declaration, in: store, now: TestStore.now)
        try #require(faults.isEmpty, "\(faults)")
        return declaration
    }

    @discardableResult
    private static func apply(
        _ text: String, _ test: TestStore, prunes: Bool = false, yes: Bool = false
    ) throws -> Plan {
        let run = DeclarationRun(prunes: prunes, takesDependents: yes)
        let plan = try run.apply(read(text, run, test.store), to: test.store, TestStore.change)
        try #require(plan.faults.isEmpty, "\(plan.faults)")
        return plan
    }

    /// A source that the team proved must not be exported as the administrator's. After a restore
    /// it would stay active without proof, even if the domain had another owner.
    @Test(arguments: Engine.all) func declaration_sourceProvedByTeam_isNotExported(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine)
        let (store, claims) = (test.store, test.store.sourceClaims)
        let claim = try claims.claim(team: "juice", "news.juice.example", TestStore.change)
        _ = try claims.record(.seen, of: claim, TestStore.change)
        #expect(try store.presentState().teams?["juice"]?.sources == [])
        try Self.apply("teams: {juice: {sources: []}}", test, prunes: true)
        #expect(try store.sources.sources(team: "juice").map(\.value) == ["news.juice.example"])
        let named = "teams: {juice: {sources: [news.juice.example]}}"
        #expect(try Self.apply(named, test).count(.add) == 1)
        #expect(try claims.claims(team: "juice").isEmpty)
        #expect(try Self.apply(named, test).changes.isEmpty)
    }

    @Test(arguments: Engine.all) func declaration_appliedTwice_changesNothing(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine)
        let before = try test.store.audit.entries().count
        let plan = try Self.apply(Self.all, test)
        #expect(
            plan.count(.add) == 15 && plan.count(.change) == 1 && plan.count(.remove) == 0,
            "\(plan.text(isApplied: true))")
        #expect(try Self.apply(Self.all, test, prunes: true).changes.isEmpty)

        let store = test.store
        #expect(
            try store.sources.sources(team: "juice").map(\.value)
                == ["billing@gmail.example", "juice.example", "mail.juice.example"])
        let settings = try store.openIDClients.settings(team: "juice", clientID: "com.juice")
        #expect(settings.algorithm == .rs256 && !settings.isPublic)
        #expect(try store.identityKeys.algorithms().contains(.rs256))
        #expect(try store.apps.decisionApp(clientID: "com.juice")?.nonceForm == .sha256Hex)
        #expect(
            try store.endpoints.endpoint(team: "pear", app: nil).url.description
                == "https://pear.example/events")
        let endpoint = try store.endpoints.endpoint(team: "juice", app: "com.juice.tablet")
        #expect(endpoint.allowsPrivate && endpoint.dialect == .apple2025)
        #expect(try store.teams.team("juice").name == "Juice and More")

        // One change: a line for the whole, and the lines of its parts, which name it.
        let lines = try store.audit.entries().dropLast(before)
        let head = try #require(lines.last)
        #expect(
            head.action == "declaration.apply" && head.detail == "15 added, 1 changed, 0 removed")
        #expect(head.subject.hasPrefix("apply:") && head.actor == "uid:0 \(head.subject)")
        #expect(Set(lines.map(\.actor)) == [head.actor] && lines.count > 15)
    }

    @Test(arguments: Engine.all) func declaration_exportedAndApplied_changesNothing(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine)
        try Self.apply(Self.all, test)
        let present = try test.store.presentState()
        let text = DeclarationWriter.text(present)
        #expect(try Self.apply(text, test, prunes: true).changes.isEmpty)
        // In another store the export creates the same state.
        let other = try Self.world(engine)
        try Self.apply(text, other, prunes: true)
        #expect(try DeclarationWriter.text(other.store.presentState()) == text)
    }

    @Test(arguments: Engine.all) func declaration_refusedAtItsEnd_leavesNothing(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine)
        let before = try (test.store.presentState(), test.store.audit.entries().count)
        // The app gets a secret, so that the step before the last is refused.
        try Self.apply("teams: {juice: {apps: {com.juice: {}}}}", test)
        _ = try test.store.openIDClients.issueSecret(
            team: "juice", clientID: "com.juice", TestStore.change)
        let (present, lines) = try (test.store.presentState(), test.store.audit.entries().count)
        #expect(present != before.0)
        var run = DeclarationRun()
        run.place = { item in item == .app(team: "juice", "com.juice") ? "teams.yaml:9" : nil }
        let declaration = try Self.read(
            """
            lists: {tor: {kind: range}}
            teams:
              pear: {name: Pear, sources: [pear.example]}
              juice: {apps: {com.juice: {public: true}}}
            """, run, test.store)
        let failure = #expect(throws: StoreFailure.self) {
            try run.apply(declaration, to: test.store, TestStore.change)
        }
        #expect(
            failure?.message.hasPrefix("teams.yaml:9: team juice: app com.juice: ") == true,
            "\(failure?.message ?? "")")
        #expect(try test.store.presentState() == present)
        #expect(try test.store.audit.entries().count == lines)
    }

    @Test(arguments: Engine.all) func declaration_rehearsed_leavesNothing(_ engine: Engine) throws {
        let test = try Self.world(engine)
        let (present, lines) = try (test.store.presentState(), test.store.audit.entries().count)
        let run = DeclarationRun()
        let plan = try run.rehearse(
            Self.read(Self.all, run, test.store), on: test.store, TestStore.change)
        #expect(plan.changes.count == 16)
        #expect(try test.store.presentState() == present)
        #expect(try test.store.audit.entries().count == lines)
        #expect(try !test.store.identityKeys.algorithms().contains(.rs256))
    }

    @Test(arguments: Engine.all) func declaration_pruned_removesUndeclared(_ engine: Engine) throws
    {
        let test = try Self.world(engine)
        try Self.apply(Self.all, test)
        let kept =
            "teams: {juice: {sources: [juice.example], apps: {com.juice: {redirect_uris: []}}, policy: null}}"
        let plan = try Self.apply(kept, test)
        #expect(plan.changes.isEmpty && plan.kept.count == 7, "\(plan.text(isApplied: true))")
        #expect(try Self.apply(kept, test, prunes: true).count(.remove) == 7)
        #expect(try test.store.teams.all().map(\.id) == ["juice"])
        #expect(try test.store.apps.apps(team: "juice").map(\.clientID) == ["com.juice"])
        #expect(try test.store.liveLists.lists(team: "juice").count == 1)
        #expect(try Self.apply(kept, test, prunes: true).changes.isEmpty)
    }

    /// A source and its pairing with an envelope domain are separate: removing one keeps the other.
    @Test(arguments: Engine.all) func declaration_sourceWithEnvelope_isSeparate(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine)
        try Self.apply(
            "teams: {juice: {sources: [a.example, {source: a.example, envelope: b.example}]}}", test
        )
        try Self.apply(
            "teams: {juice: {sources: [{source: a.example, envelope: b.example}]}}", test,
            prunes: true)
        #expect(
            try test.store.sources.sources(team: "juice").map(\.envelopeDomain) == ["b.example"])
    }

    /// Removing the mail endpoint must not remove the endpoint of the team's apps.
    @Test(arguments: Engine.all) func declaration_mailEndpoint_isSeparateFromApps(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine)
        try Self.apply("teams: {juice: {endpoint: https://juice.example/mail}}", test)
        let apps = "apps: {com.juice: {endpoint: https://juice.example/apps}}"
        try Self.apply("teams: {juice: {\(apps)}}", test)
        let text = DeclarationWriter.text(try test.store.presentState())
        #expect(text.contains("juice.example/mail") && text.contains("juice.example/apps"))
        #expect(try Self.apply(text, test, prunes: true).changes.isEmpty)
        #expect(
            try Self.apply("teams: {juice: {endpoint: null, \(apps)}}", test, prunes: true).count(
                .remove) == 1)
        #expect(
            try test.store.endpoints.endpoints(team: "juice").map(\.url.description) == [
                "https://juice.example/apps"
            ])
    }

    @Test(arguments: Engine.all) func declaration_teamWithUsers_isPrunedOnlyIfConfirmed(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine)
        try Self.apply("teams: {juice: {}, pear: {name: Pear}}", test)
        try test.user("jane")
        _ = try test.address("jane", team: "pear")
        expectRefusal(.unmet) { try Self.apply("teams: {juice: {}}", test, prunes: true) }
        #expect(try test.store.teams.dependents("pear").addresses == 1)
        #expect(
            try Self.apply("teams: {juice: {}}", test, prunes: true, yes: true).count(.remove) == 1)
        // A declaration contains nothing about users.
        let text = DeclarationWriter.text(try test.store.presentState())
        #expect(!text.contains("jane") && !text.contains("home.example"))
    }

    @Test(arguments: Engine.all) func declaration_appliedConcurrently_addsOnce(
        _ engine: Engine
    ) async throws {
        let test = try Self.world(engine)
        let added = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    try await withCheckedThrowingContinuation { continuation in
                        Thread {
                            continuation.resume(
                                with: Result { try Self.apply(Self.all, test).count(.add) })
                        }.start()
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(added.sorted() == [0, 0, 0, 15])
    }

    /// An export contains no app secret, no key and no hash of one.
    @Test(arguments: Engine.all) func declaration_secretsAndKeys_areNotExported(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine)
        try Self.apply(Self.all, test)
        let (secret, issued) = try test.store.openIDClients.issueSecret(
            team: "juice", clientID: "com.juice", TestStore.change)
        let key = try test.store.apiKeys.issue(
            team: "juice", scopes: [.sourcesRead], expiresAt: nil, note: "a note", TestStore.change)
        let text = DeclarationWriter.text(try test.store.presentState())
        for part in [secret, issued.name, "\(key.text)", key.key.id, "a note"] {
            #expect(!text.contains(part))
        }
    }
}
