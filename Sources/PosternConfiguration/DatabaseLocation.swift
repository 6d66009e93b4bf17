// Where the database is: a file, or a server.

import Database
import Foundation
import PosternPostgres
import PosternSQLite

/// What the key `database` names. Describes itself without a password.
package struct DatabaseLocation: Sendable, CustomStringConvertible, CustomReflectable {
    private enum Place {
        case file(String)
        case server(String)
    }

    private let place: Place
    /// Connections of this process to a server at most.
    private let connections: Int

    /// - Parameters:
    ///   - text: a URL of PostgreSQL, or what is not a URL and hence a path.
    ///   - path: the absolute path that stands for the text.
    /// Throws `ConfigurationError` for a URL that is none of PostgreSQL or cannot be read; no message quotes it.
    package init(
        _ text: String, path: String, connections: Int = PostgresDatabase.Settings().connections, at place: String
    ) throws {
        self.connections = connections
        guard text.contains("://") else {
            self.place = .file(path)
            return
        }
        if let complaint = PostgresDatabase.complaint(about: text) {
            throw ConfigurationError(
                .invalidValue, at: place, "database: give the path of a file, or a URL of PostgreSQL: \(complaint)")
        }
        self.place = .server(text)
    }

    /// The SQLite file; nil for a server.
    package var path: String? { if case .file(let path) = place { path } else { nil } }

    /// The path, or the URL without its password.
    package var description: String {
        switch place {
        case .file(let path): path
        case .server(let url): withoutPasswords(url)
        }
    }

    package var customMirror: Mirror { Mirror(self, children: [:]) }

    /// Opens the database.
    /// - Parameter creating: make the file where there is none; databases on a server are never made.
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

/// A URL as it may be shown: `(redacted)` in place of every password in it. What cannot be divided with certainty is hidden too.
package func withoutPasswords(_ url: String) -> String {
    guard let scheme = url.range(of: "://") else { return url }
    var rest = url[scheme.upperBound...]
    var shown = String(url[..<scheme.upperBound])
    if let at = rest.lastIndex(of: "@"), let colon = rest[..<at].firstIndex(of: ":") {
        shown += rest[...colon] + "(redacted)"
        rest = rest[at...]
    }
    guard let question = rest.firstIndex(of: "?") else { return shown + rest }
    let parameters = rest[rest.index(after: question)...].split(separator: "&", omittingEmptySubsequences: false).map {
        parameter in
        let name = parameter.prefix { $0 != "=" }
        let isSecret = (name.removingPercentEncoding ?? "password").lowercased().contains("password")
        return isSecret ? name + "=(redacted)" : String(parameter)
    }
    return shown + rest[...question] + parameters.joined(separator: "&")
}
