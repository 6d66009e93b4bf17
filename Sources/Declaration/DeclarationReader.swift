// Files → a declaration. Reports every fault with its file, line and nearest key, so that an author
// sees all of them at once.

import RiskPolicy
import Yams

/// The keys of a file, by position; `declaration.schema.json` has the same.
package enum DeclarationKeys {
    package static let root = ["teams", "lists", "policies"]
    package static let team = ["name", "sign_in", "sources", "apps", "lists", "endpoint", "policy"]
    package static let source = ["source", "envelope"]
    package static let app = [
        "name", "group", "public", "id_token_algorithm", "sign_in", "nonce", "redirect_uris",
        "post_logout_redirect_uris",
        "backchannel_logout_uri", "endpoint",
        "policy",
    ]
    package static let nonce = ["form", "required"]
    package static let endpoint = ["url", "allow_http", "allow_private", "dialect"]
    package static let list = ["kind"]
    package static let policy = ["folder", "hash", "default"]
}

/// Reads files one after another. All declarations about one team must be in one file.
package struct DeclarationReader {
    /// The declaration read so far.
    package private(set) var declaration = Declaration()
    private var places: [DeclaredItem: (file: YAMLFile, position: SourcePosition)] = [:]
    private let faults = DiagnosticCollector()

    package init() {}

    /// Reads a file. Faults are kept until `finish`.
    /// - Parameter name: the file's name in messages.
    package mutating func read(_ text: String, name: String) {
        do throws(PolicyRefusal) {
            let file = try YAMLFile(name: name, text: text)
            var reading = FileReading(
                reader: YAMLReader(file: file, faults: faults), declaration: declaration)
            reading.places = places.mapValues {
                ("\($0.file.name):\($0.position.line)", $0.position)
            }
            reading.root(file.root)
            declaration = reading.declaration
            for (item, position) in reading.found { places[item] = (file, position) }
        } catch {
            for fault in error.diagnostics { faults.add(fault) }
        }
    }

    /// Reports a fault of an item, at its position, or at that of the item that contains it.
    package func report(_ item: DeclaredItem, _ message: String) {
        var place: DeclaredItem? = item
        while let item = place, places[item] == nil { place = item.parent }
        guard let (file, position) = place.flatMap({ places[$0] }) else {
            let start = SourcePosition(line: 1, column: 1)
            return faults.add(
                PolicyDiagnostic(
                    file: "(store)", position: start, message: "\(item): \(message)", excerpt: ""))
        }
        faults.add(file.diagnostic(at: position, "\(item): \(message)"))
    }

    /// The file and line of an item, for example `teams.yaml:12`; nil if no file contains it.
    package func place(of item: DeclaredItem) -> String? {
        places[item].map { "\($0.file.name):\($0.position.line)" }
    }

    /// The file of an item, by its given name.
    package func file(of item: DeclaredItem) -> String? { places[item]?.file.name }

    /// Throws the faults, if any.
    package func finish() throws(PolicyRefusal) { try faults.throwIfAny() }
}

extension DeclaredItem {
    fileprivate var parent: DeclaredItem? {
        switch self {
        case .list(let team, _): team.map { .team($0) }
        case .policy, .team: nil
        case .source(let team, _): .team(team)
        case .app(let team, _): .team(team)
        case .redirectURI(let team, let app, _), .logoutURI(let team, let app, _):
            .app(team: team, app)
        case .endpoint(let team, let app), .binding(let team, let app):
            app.map { .app(team: team, $0) } ?? .team(team)
        }
    }
}

/// One file, added to the earlier ones.
private struct FileReading {
    let reader: YAMLReader
    var declaration: Declaration
    /// Positions from other files, for messages.
    var places: [DeclaredItem: (String, SourcePosition)] = [:]
    var found: [DeclaredItem: SourcePosition] = [:]

    mutating func root(_ node: Node) {
        guard !YAMLReader.isNull(node),
            let fields = reader.fields(
                node, "the file", required: [], optional: DeclarationKeys.root)
        else { return }
        if let node = fields["teams"] {
            var teams = declaration.teams ?? [:]
            for (id, key, value) in entries(node, "teams") where isNew(.team(id), key) {
                teams[id] = team(id, value)
            }
            declaration.teams = teams
        }
        if let node = fields["lists"] {
            declaration.lists = (declaration.lists ?? [:]).merging(lists(node, team: nil)) { $1 }
        }
        if let node = fields["policies"] {
            var policies = declaration.policies ?? [:]
            for (name, key, value) in entries(node, "policies") where isNew(.policy(name), key) {
                policies[name] = policy(name, value)
            }
            declaration.policies = policies
        }
    }

    private mutating func team(_ id: String, _ node: Node) -> DeclaredTeam {
        var team = DeclaredTeam()
        guard !YAMLReader.isNull(node),
            let fields = reader.fields(
                node, "team '\(id)'", required: [], optional: DeclarationKeys.team)
        else { return team }
        team.name = reader.text(fields["name"], "the name")
        team.signInLevel = signInLevel(fields["sign_in"])
        if let node = fields["sources"] { team.sources = sources(id, node) }
        if let node = fields["lists"] { team.lists = lists(node, team: id) }
        team.endpoint = endpoint(fields["endpoint"], .endpoint(team: id, app: nil))
        team.policy = name(fields["policy"], "the policy", .binding(team: id, app: nil))
        if let node = fields["apps"] {
            var apps: [String: DeclaredApp] = [:]
            for (clientID, key, value) in entries(node, "apps")
            where isNew(.app(team: id, clientID), key) {
                apps[clientID] = app(id, clientID, value)
            }
            team.apps = apps
        }
        return team
    }

    private mutating func signInLevel(_ node: Node?) -> String? {
        reader.word(node, "sign_in", among: ["any", "two_factor", "passkey"])
    }

    private mutating func sources(_ team: String, _ node: Node) -> Set<DeclaredSource>? {
        guard let nodes = list(node, "sources") else { return nil }
        var sources: Set<DeclaredSource> = []
        for node in nodes {
            let source: DeclaredSource
            if case .mapping = node {
                guard
                    let fields = reader.fields(
                        node, "a source", required: ["source"], optional: DeclarationKeys.source),
                    let domain = reader.text(fields["source"], "the source")
                else { continue }
                source = DeclaredSource(
                    domain, envelope: reader.text(fields["envelope"], "the envelope domain"))
            } else {
                guard let domain = reader.text(node, "a source") else { continue }
                source = DeclaredSource(domain)
            }
            if isNew(.source(team: team, source), node) { sources.insert(source) }
        }
        return sources
    }

    private mutating func app(_ team: String, _ id: String, _ node: Node) -> DeclaredApp {
        var app = DeclaredApp()
        guard !YAMLReader.isNull(node),
            let fields = reader.fields(
                node, "app '\(id)'", required: [], optional: DeclarationKeys.app)
        else { return app }
        app.name = name(fields["name"], "the name", nil)
        app.group = reader.text(fields["group"], "the group")
        app.isPublic = fields["public"].flatMap { reader.flag($0, "'public'") }
        app.algorithm = reader.word(
            fields["id_token_algorithm"], "algorithm", among: ["ES256", "RS256"])
        app.signInLevel = signInLevel(fields["sign_in"])
        if let node = fields["nonce"],
            let nonce = reader.fields(
                node, "'nonce'", required: [], optional: DeclarationKeys.nonce)
        {
            app.nonceForm = reader.word(nonce["form"], "form", among: ["raw", "sha256_hex"])
            app.isNonceRequired = nonce["required"].flatMap { reader.flag($0, "'required'") }
        }
        app.redirectURIs = uris(fields["redirect_uris"], "redirect_uris") {
            .redirectURI(team: team, app: id, $0)
        }
        app.logoutURIs = uris(fields["post_logout_redirect_uris"], "post_logout_redirect_uris") {
            .logoutURI(team: team, app: id, $0)
        }
        app.backchannelLogoutURI = name(fields["backchannel_logout_uri"], "the URI", nil)
        app.endpoint = endpoint(fields["endpoint"], .endpoint(team: team, app: id))
        app.policy = name(fields["policy"], "the policy", .binding(team: team, app: id))
        return app
    }

    private mutating func uris(
        _ node: Node?, _ what: String, _ item: (String) -> DeclaredItem
    ) -> Set<String>? {
        guard let node, let nodes = list(node, what) else { return nil }
        var uris: Set<String> = []
        for node in nodes {
            if let uri = reader.text(node, "a URI"), isNew(item(uri), node) { uris.insert(uri) }
        }
        return uris
    }

    private mutating func endpoint(
        _ node: Node?, _ item: DeclaredItem
    ) -> Declared<DeclaredEndpoint> {
        guard let node else { return .unsaid }
        found[item] = reader.file.position(of: node)
        if YAMLReader.isNull(node) { return .none }
        if case .scalar = node {
            return reader.text(node, "the endpoint").map { .some(DeclaredEndpoint(url: $0)) }
                ?? .unsaid
        }
        guard
            let fields = reader.fields(
                node, "the endpoint", required: ["url"], optional: DeclarationKeys.endpoint),
            let url = reader.text(fields["url"], "the URL")
        else { return .unsaid }
        let reader = reader
        let flag = { (key: String) in fields[key].flatMap { reader.flag($0, "'\(key)'") } ?? false }
        let dialects = DeclaredEndpoint.dialects
        return .some(
            DeclaredEndpoint(
                url: url, allowsHTTP: flag("allow_http"), allowsPrivate: flag("allow_private"),
                dialect: fields["dialect"].flatMap { reader.word($0, "dialect", among: dialects) }
                    ?? dialects[0]))
    }

    private mutating func lists(_ node: Node, team: String?) -> [String: DeclaredList] {
        var lists: [String: DeclaredList] = [:]
        for (name, key, value) in entries(node, "lists") where isNew(.list(team: team, name), key) {
            guard
                let fields = reader.fields(
                    value, "list '\(name)'", required: DeclarationKeys.list, optional: []),
                let kind = reader.word(
                    fields["kind"], "kind", among: ["text", "domain", "range", "personal"])
            else { continue }
            lists[name] = DeclaredList(kind: kind)
        }
        return lists
    }

    private mutating func policy(_ name: String, _ node: Node) -> DeclaredPolicy? {
        guard
            let fields = reader.fields(
                node, "policy '\(name)'", required: [], optional: DeclarationKeys.policy)
        else {
            return nil
        }
        let isDefault = fields["default"].flatMap { reader.flag($0, "'default'") } ?? false
        let folder = reader.text(fields["folder"], "the folder")
        let hash = reader.text(fields["hash"], "the hash")
        guard (folder == nil) != (hash == nil) else {
            reader.report(node, "policy '\(name)' needs either 'folder' or 'hash'")
            return nil
        }
        return DeclaredPolicy(hash: hash ?? "", folder: folder, isDefault: isDefault)
    }

    // MARK: Parts

    /// A text, or null for no value.
    private mutating func name(
        _ node: Node?, _ what: String, _ item: DeclaredItem?
    ) -> Declared<String> {
        guard let node else { return .unsaid }
        if let item { found[item] = reader.file.position(of: node) }
        if YAMLReader.isNull(node) { return .none }
        return reader.text(node, what).map { .some($0) } ?? .unsaid
    }

    /// A section may be present and empty.
    private func entries(
        _ node: Node, _ what: String
    ) -> [(key: String, keyNode: Node, value: Node)] {
        YAMLReader.isNull(node) ? [] : reader.entries(node, "'\(what)'") ?? []
    }

    private func list(_ node: Node, _ what: String) -> [Node]? {
        YAMLReader.isNull(node) ? [] : reader.list(node, "'\(what)'")
    }

    /// Records the position of an item; reports a fault if it was declared before.
    private mutating func isNew(_ item: DeclaredItem, _ node: Node) -> Bool {
        if let other = places[item]?.0 ?? found[item].map({ "line \($0.line)" }) {
            reader.report(node, "\(item) is declared twice; before at \(other)")
            return false
        }
        found[item] = reader.file.position(of: node)
        return true
    }
}
