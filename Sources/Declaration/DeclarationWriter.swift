// A declaration → YAML that reads back as the same declaration. Default values of a new item are
// left out.

/// Writes a declaration.
package struct DeclarationWriter {
    private var lines: [String] = []

    /// The text of a file; always the same for the same declaration.
    package static func text(_ declaration: Declaration) -> String {
        var writer = DeclarationWriter()
        if let lists = declaration.lists { writer.lists(lists, 0) }
        if let policies = declaration.policies { writer.policies(policies) }
        if let teams = declaration.teams {
            writer.section("teams", 0, isEmpty: teams.isEmpty)
            for (id, team) in teams.sorted(by: { $0.key < $1.key }) { writer.team(id, team) }
        }
        return writer.lines.map { $0 + "\n" }.joined()
    }

    private mutating func team(_ id: String, _ team: DeclaredTeam) {
        line(1, id, nil)
        if let name = team.name { line(2, "name", name) }
        if let level = team.signInLevel, level != DeclaredApp.usualSignInLevel {
            line(2, "sign_in", level)
        }
        binding(team.policy, 2)
        if let sources = team.sources {
            section("sources", 2, isEmpty: sources.isEmpty, "[]")
            for source in sources.sorted() {
                guard let envelope = source.envelope else {
                    item(3, Self.scalar(source.source))
                    continue
                }
                item(3, "source: \(Self.scalar(source.source))")
                line(4, "envelope", envelope)
            }
        }
        if let lists = team.lists { self.lists(lists, 2) }
        endpoint(team.endpoint, 2)
        guard let apps = team.apps else { return }
        section("apps", 2, isEmpty: apps.isEmpty)
        // A primary app comes before the apps of its group.
        for (id, app) in apps.sorted(by: {
            ($0.value.group ?? "", $0.key) < ($1.value.group ?? "", $1.key)
        }) {
            self.app(id, app)
        }
    }

    private mutating func app(_ id: String, _ app: DeclaredApp) {
        let start = lines.count
        line(3, id, nil)
        if let name = app.name.value { line(4, "name", name) }
        if let group = app.group { line(4, "group", group) }
        if app.isPublic == true { raw(4, "public", "true") }
        if let algorithm = app.algorithm, algorithm != DeclaredApp.usualAlgorithm {
            line(4, "id_token_algorithm", algorithm)
        }
        if let level = app.signInLevel, level != DeclaredApp.usualSignInLevel {
            line(4, "sign_in", level)
        }
        let form = app.nonceForm.flatMap { $0 == DeclaredApp.usualNonceForm ? nil : $0 }
        let isRequired = app.isNonceRequired.flatMap {
            $0 == DeclaredApp.usuallyRequiresNonce ? nil : $0
        }
        if form != nil || isRequired != nil {
            line(4, "nonce", nil)
            if let form { line(5, "form", form) }
            if let isRequired { raw(5, "required", isRequired ? "true" : "false") }
        }
        binding(app.policy, 4)
        endpoint(app.endpoint, 4)
        uris("redirect_uris", app.redirectURIs)
        uris("post_logout_redirect_uris", app.logoutURIs)
        if let uri = app.backchannelLogoutURI.value { line(4, "backchannel_logout_uri", uri) }
        if lines.count == start + 1 { lines[start] += " {}" }
    }

    private mutating func uris(_ key: String, _ uris: Set<String>?) {
        guard let uris, !uris.isEmpty else { return }
        line(4, key, nil)
        for uri in uris.sorted() { item(5, Self.scalar(uri)) }
    }

    private mutating func endpoint(_ endpoint: Declared<DeclaredEndpoint>, _ depth: Int) {
        guard let endpoint = endpoint.value else { return }
        guard endpoint != DeclaredEndpoint(url: endpoint.url) else {
            return line(depth, "endpoint", endpoint.url)
        }
        line(depth, "endpoint", nil)
        line(depth + 1, "url", endpoint.url)
        if endpoint.allowsHTTP { raw(depth + 1, "allow_http", "true") }
        if endpoint.allowsPrivate { raw(depth + 1, "allow_private", "true") }
        if endpoint.dialect != DeclaredEndpoint.dialects[0] {
            line(depth + 1, "dialect", endpoint.dialect)
        }
    }

    private mutating func binding(_ policy: Declared<String>, _ depth: Int) {
        if let name = policy.value { line(depth, "policy", name) }
    }

    private mutating func lists(_ lists: [String: DeclaredList], _ depth: Int) {
        section("lists", depth, isEmpty: lists.isEmpty)
        for (name, list) in lists.sorted(by: { $0.key < $1.key }) {
            line(depth + 1, name, nil)
            line(depth + 2, "kind", list.kind)
        }
    }

    private mutating func policies(_ policies: [String: DeclaredPolicy]) {
        section("policies", 0, isEmpty: policies.isEmpty)
        for (name, policy) in policies.sorted(by: { $0.key < $1.key }) {
            line(1, name, nil)
            line(2, policy.folder == nil ? "hash" : "folder", policy.folder ?? policy.hash)
            if policy.isDefault { raw(2, "default", "true") }
        }
    }

    // MARK: Lines

    private mutating func section(
        _ key: String, _ depth: Int, isEmpty: Bool, _ empty: String = "{}"
    ) {
        if isEmpty { raw(depth, key, empty) } else { line(depth, key, nil) }
    }

    private mutating func line(_ depth: Int, _ key: String, _ value: String?) {
        raw(depth, Self.scalar(key), value.map(Self.scalar))
    }

    private mutating func raw(_ depth: Int, _ key: String, _ value: String?) {
        lines.append(Self.indent(depth) + key + ":" + (value.map { " " + $0 } ?? ""))
    }

    private mutating func item(_ depth: Int, _ text: String) {
        lines.append(Self.indent(depth) + "- " + text)
    }

    private static func indent(_ depth: Int) -> String { String(repeating: "  ", count: depth) }

    /// Plain if every YAML reader of any version reads it as this text; otherwise in double quotes.
    static func scalar(_ text: String) -> String {
        let words = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"]
        let isPlain =
            text.utf8.first.map { (0x61...0x7A).contains($0 | 0x20) } == true
            && text.utf8.last != UInt8(ascii: ":")
            && text.utf8.allSatisfy {
                (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0)
                    || "-._/:@=?&%+~".utf8.contains($0)
            } && !words.contains(text.lowercased())
        if isPlain { return text }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\" + String(scalar)
            case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value):
                let digits = String(scalar.value, radix: 16)
                quoted += "\\x" + (digits.utf8.count < 2 ? "0" : "") + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

extension DeclaredApp {
    /// The defaults of a new app (migration 4).
    package static let usualAlgorithm = "RS256"
    package static let usualSignInLevel = "any"
    package static let usualNonceForm = "raw"
    package static let usuallyRequiresNonce = true
}
