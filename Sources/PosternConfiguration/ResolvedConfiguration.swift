// Layers of configuration: defaults, file, environment, flags. Each overrides the one before.

import Accounts
import Foundation
import Support

/// Every key with its value and the origin of the value.
package struct ResolvedConfiguration: Sendable {
    /// The layer that set a value.
    package enum Origin: Sendable, Hashable {
        case standard
        /// `file:line`.
        case file(String)
        /// The variable's name.
        case environment(String)
        case flag

        package var text: String {
            switch self {
            case .standard: "default"
            case .file(let place): place
            case .environment(let variable): variable
            case .flag: "--set"
            }
        }
    }

    /// One key with its value in force.
    package struct Entry: Sendable {
        package let key: ConfigurationKey
        package let value: ConfigurationValue
        package let origin: Origin

        /// The value for people; a password in a database URL is hidden.
        package var shownValue: String {
            if case .text(let text) = value { withoutPasswords(text) } else { value.text }
        }
    }

    /// In the order of the file.
    package let entries: [Entry]
    /// The file that was read.
    package let path: String

    /// The default path of the configuration.
    package static let usualPath = "/etc/postern/postern.yaml"

    /// The path of the file: the flag, `POSTERN_CONFIG`, or the default path. For a folder it is
    /// the `postern.yaml` in it.
    package static func locate(flag: String?, environment: [String: String]) -> String {
        let named =
            flag ?? environment["POSTERN_CONFIG"].flatMap { $0.isEmpty ? nil : $0 } ?? usualPath
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: named, isDirectory: &isFolder),
            isFolder.boolValue
        else { return named }
        return named.hasSuffix("/") ? named + "postern.yaml" : named + "/postern.yaml"
    }

    /// Reads all layers.
    /// - Parameters:
    ///   - environment: all variables of the process.
    ///   - flags: `key=value` texts, as from `--set`.
    ///   - machineName: the result of `gethostname`.
    package init(
        path: String, environment: [String: String], flags: [String], machineName: String
    ) throws {
        try self.init(
            file: ConfigurationFile(path: path), path: path, environment: environment, flags: flags,
            machineName: machineName)
    }

    /// As above, for a file that was read before. Errors name `path`, and relative paths start from
    /// its folder.
    package init(
        file: ConfigurationFile, path: String, environment: [String: String], flags: [String],
        machineName: String
    ) throws {
        let name = (path as NSString).lastPathComponent
        let flags = try Self.flagValues(flags)
        try Self.checkVariables(environment)
        var values: [ConfigurationKey: (ConfigurationValue, Origin)] = [:]
        for key in ConfigurationKey.allCases {
            let found: (raw: RawValue, origin: Origin)?
            if let text = flags[key] {
                found = (.scalar(text), .flag)
            } else if let text = environment[key.variable] {
                found = (text.isEmpty ? .null : .scalar(text), .environment(key.variable))
            } else if let entry = file.entries[key] {
                found = (entry.value, .file("\(name):\(entry.line)"))
            } else {
                found = nil
            }
            guard let found else {
                values[key] = (try Self.standard(key, path), .standard)
                continue
            }
            if case .null = found.raw {
                // `key:` with nothing after it means the default.
                values[key] = (try Self.standard(key, path), .standard)
                continue
            }
            switch key.facts.kind.check(found.raw) {
            case .success(let value): values[key] = (value, found.origin)
            case .failure(let complaint):
                let place =
                    if case .file = found.origin { path + ":\(file.entries[key]?.line ?? 0)" } else
                    { found.origin.text }
                throw ConfigurationError(
                    .invalidValue, at: place, "\(key.rawValue): \(complaint.message)")
            }
        }
        guard case .list(let domains)? = values[.relayDomains]?.0, let first = domains.first else {
            throw ConfigurationError(
                .invalidValue, at: path, "relay_domains: at least one domain is required")
        }
        if values[.hostname]?.0 == ConfigurationValue.none {
            let machine = HostName(machineName).flatMap { $0.labels.count > 1 ? $0.text : nil }
            values[.hostname] = (.text(machine ?? first), .standard)
        }
        if values[.authservID]?.0 == ConfigurationValue.none {
            values[.authservID] = (.text(first), .standard)
        }
        if values[.providerIssuer]?.0 == ConfigurationValue.none,
            let url = values[.httpPublicURL]?.0
        {
            values[.providerIssuer] = (url, .standard)
        }
        if values[.mailFrom]?.0 == ConfigurationValue.none {
            values[.mailFrom] = (.text("postmaster@\(first)"), .standard)
        }
        self.path = path
        entries = ConfigurationKey.allCases.map { key in
            let (value, origin) = values[key] ?? (.none, .standard)
            return Entry(key: key, value: value, origin: origin)
        }
    }

    /// The value of a key.
    package func value(_ key: ConfigurationKey) -> ConfigurationValue {
        entries.first { $0.key == key }?.value ?? .none
    }

    private static func standard(
        _ key: ConfigurationKey, _ path: String
    ) throws -> ConfigurationValue {
        switch key.facts.standard {
        case .value(let value): return value
        case .absent, .derived: return .none
        case .required:
            throw ConfigurationError(
                .invalidValue, at: path, "\(key.rawValue) is not set: it has no default")
        }
    }

    /// The values of `key=value` texts by key.
    package static func flagValues(_ flags: [String]) throws -> [ConfigurationKey: String] {
        var result: [ConfigurationKey: String] = [:]
        for flag in flags {
            guard let equals = flag.firstIndex(of: "=") else {
                throw ConfigurationError(
                    .syntax, at: "--set", "must be KEY=VALUE, as in limits.hops=30")
            }
            let path = String(flag[..<equals])
            guard let key = ConfigurationKey(rawValue: path) else {
                throw ConfigurationError(.unknownKey, at: "--set", unknownKeyMessage(path))
            }
            result[key] = String(flag[flag.index(after: equals)...])
        }
        return result
    }

    /// Refuses variables that look like a mistyped key: `POSTERN_LIMITS_…` of a section that has no
    /// such key, and those within two letters of a known one. Other variables that begin with
    /// `POSTERN_` belong to other programs.
    private static func checkVariables(_ environment: [String: String]) throws {
        let known = Set(ConfigurationKey.allCases.map(\.variable)).union(["POSTERN_CONFIG"])
        let sections = Set(
            ConfigurationKey.allCases.compactMap {
                $0.place.section.map { "POSTERN_" + $0.uppercased() + "_" }
            })
        for name in environment.keys.sorted()
        where name.hasPrefix("POSTERN_") && !known.contains(name) {
            let isNear = known.contains { editDistance(name, $0) <= 2 }
            guard isNear || sections.contains(where: name.hasPrefix) else { continue }
            let nearest = NearestName.find(name, among: known.sorted())
            throw ConfigurationError(
                .unknownKey, at: name,
                "this variable is not a known key"
                    + (nearest.map { ": did you mean \($0)?" }
                        ?? ": postern config show lists all keys"))
        }
    }
}
