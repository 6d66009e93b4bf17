// The location of the database: a file, or a server.

import Database
import Foundation
import PosternPostgres
import PosternSQLite
import Support

/// The database that the key `database` names. Its description has no password.
package struct DatabaseLocation: Sendable, CustomStringConvertible, CustomReflectable {
    private enum Place {
        case file(String)
        case server(String)
    }

    private let place: Place
    /// The maximum number of connections of this process to a server.
    package let connections: Int

    /// - Parameters:
    ///   - text: a URL of PostgreSQL, or a path.
    ///   - path: the absolute path for the text. Throws `ConfigurationError` for a URL that is not
    ///     one of PostgreSQL or cannot be read. It also throws for other texts that name a server
    ///     with its password, because they are not paths. No message quotes the text.
    package init(
        _ text: String, path: String, connections: Int = PostgresDatabase.Settings().connections,
        at place: String
    ) throws {
        self.connections = connections
        guard text.contains("://") else {
            guard !namesServer(text) else {
                throw ConfigurationError(
                    .invalidValue, at: place,
                    "database: give the path of a file, or a server as a URL: postgresql://user@host/name"
                )
            }
            self.place = .file(path)
            return
        }
        if let complaint = PostgresDatabase.complaint(about: text) {
            throw ConfigurationError(
                .invalidValue, at: place,
                "database: give the path of a file, or a URL of PostgreSQL: \(complaint)")
        }
        self.place = .server(text)
    }

    /// The standby that the key `database_replica` names; nil if it names none. Throws
    /// `ConfigurationError` if the text is no URL of PostgreSQL, or the database is a file.
    static func replica(
        _ text: String, of database: DatabaseLocation, connections: Int, at place: String
    ) throws -> DatabaseLocation? {
        guard !text.utf8.isEmpty else { return nil }
        func error(_ message: String) -> ConfigurationError {
            ConfigurationError(.invalidValue, at: place, "database_replica: \(message)")
        }
        guard text.contains("://") else {
            throw error("give a URL of PostgreSQL: postgresql://user@host/name")
        }
        if let complaint = PostgresDatabase.complaint(about: text) { throw error(complaint) }
        guard database.path == nil else {
            throw error("only a database on PostgreSQL has a standby, and database names a file")
        }
        return try DatabaseLocation(text, path: "", connections: connections, at: place)
    }

    /// The SQLite file; nil for a server.
    package var path: String? { if case .file(let path) = place { path } else { nil } }

    /// The number of servers in the URL; 0 for a file.
    package var servers: Int {
        if case .server(let url) = place { PostgresDatabase.servers(in: url) } else { 0 }
    }

    /// The path, or the URL without its password.
    package var description: String {
        switch place {
        case .file(let path): path
        case .server(let url): withoutPasswords(url)
        }
    }

    package var customMirror: Mirror { Mirror(self, children: [:]) }

    /// Reads at this standby of `primary`; connects when it is first used. Nil for a file.
    package func replica(of primary: any Database) -> ReplicaDatabase? {
        guard case .server(let url) = place else { return nil }
        var settings = PostgresDatabase.Settings()
        settings.connections = connections
        return ReplicaDatabase(primary: primary, url: url, settings: settings)
    }

    /// Opens the database.
    /// - Parameter creating: whether to create the file if it does not exist; databases on a server
    ///   are never created.
    package func open(creating: Bool = false) throws -> any Database {
        switch place {
        case .file(let path): return try SQLiteDatabase(path: path, creating: creating)
        case .server(let url):
            var settings = PostgresDatabase.Settings()
            settings.connections = connections
            return try PostgresDatabase(url: url, settings: settings)
        }
    }
}

/// Whether a text that is not a URL still names a server: `host=… password=…`, `postgresql:…` or
/// `user:…@host`.
private func namesServer(_ text: String) -> Bool {
    let octets = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }
    guard octets.first != UInt8(ascii: "/") || octets.starts(with: "//".utf8) else { return false }
    let word = octets.prefix { $0.isASCIILetter || $0 == UInt8(ascii: "_") }
    let mark = octets[word.endIndex...].first { $0 != 0x20 && $0 != 0x09 }
    if !word.isEmpty,
        mark == UInt8(ascii: "=") || octets[word.endIndex...].first == UInt8(ascii: ":")
    {
        return true
    }
    guard let at = octets.lastIndex(of: UInt8(ascii: "@")) else { return false }
    return octets[..<at].contains(UInt8(ascii: ":"))
}

/// The URL in a form that may be shown: `(redacted)` replaces every password, and parts that cannot
/// be parsed with certainty.
package func withoutPasswords(_ url: String) -> String {
    guard let scheme = url.range(of: "://") else { return url }
    var rest = url[scheme.upperBound...]
    var shown = String(url[..<scheme.upperBound])
    if let at = rest.lastIndex(of: "@"), let colon = rest[..<at].firstIndex(of: ":") {
        shown += rest[...colon] + "(redacted)"
        rest = rest[at...]
    }
    guard let question = rest.firstIndex(of: "?") else { return shown + rest }
    let parameters = rest[rest.index(after: question)...].split(
        separator: "&", omittingEmptySubsequences: false
    ).map {
        parameter in
        let name = parameter.prefix { $0 != "=" }
        let isSecret = (name.removingPercentEncoding ?? "password").lowercased().contains(
            "password")
        return isSecret ? name + "=(redacted)" : String(parameter)
    }
    return shown + rest[...question] + parameters.joined(separator: "&")
}
