// The available languages, and the language for a user.

import Foundation

/// All languages: the built-in ones, and those of the operator's folder.
package struct Languages: Sendable {
    /// English first, the others by tag.
    package let all: [Catalogue]

    /// Only English.
    package static let english = Languages(all: [.english])

    private init(all: [Catalogue]) { self.all = all }

    /// Octets of a catalogue file.
    private static let maximumSize = 1_000_000

    /// The built-in languages. Throws if one of our files is wrong, which tests prevent.
    package static func builtIn() throws(CatalogueError) -> Languages { try Languages([:]) }

    /// The built-in languages and those of a folder, `nl.json` and so on. A file of the folder
    /// replaces a built-in language of the same name.
    package init(folder: String) throws(CatalogueError) {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
                !$0.hasPrefix(".")
            }.sorted()
        } catch {
            throw CatalogueError(file: folder, message: "the folder of languages cannot be read")
        }
        var found: [String: (file: String, octets: [UInt8])] = [:]
        for name in names {
            let (tag, path) = (String(name.dropLast(".json".count)), "\(folder)/\(name)")
            guard name.hasSuffix(".json"), tag.wholeMatch(of: /[a-z]{2,3}(-[a-z0-9]{2,8})*/) != nil,
                tag != "en"
            else {
                throw CatalogueError(
                    file: path,
                    message:
                        "must be named by its language tag in lower case, as in nl.json; not en")
            }
            guard let octets = Self.octets(path) else {
                throw CatalogueError(
                    file: path,
                    message:
                        "is not a file, cannot be read, or has more than \(Self.maximumSize) octets"
                )
            }
            found[tag] = (path, octets)
        }
        try self.init(found)
    }

    /// Nil for a path that is not a regular file, cannot be read or is too large. Pipes and devices
    /// are not read, because they may have no end.
    private static func octets(_ path: String) -> [UInt8]? {
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: target),
            attributes[.type] as? FileAttributeType == .typeRegular,
            let size = attributes[.size] as? Int, size <= maximumSize,
            let data = FileManager.default.contents(atPath: target)
        else { return nil }
        return Array(data)
    }

    private init(_ more: [String: (file: String, octets: [UInt8])]) throws(CatalogueError) {
        var files = Embedded.files.reduce(into: [String: (file: String, octets: [UInt8])]()) {
            let name = $1.path.split(separator: "/").last ?? ""
            $0[String(name.dropLast(".json".count))] = ("built-in \(name)", Array($1.text.utf8))
        }
        for (tag, file) in more { files[tag] = file }
        var all = [Catalogue.english]
        for (tag, file) in files.sorted(by: { $0.key < $1.key }) {
            all.append(try Catalogue(tag: tag, file: file.file, json: file.octets))
        }
        self.all = all
    }

    /// The cookie with the tag of the language that the user chose.
    package static let cookie = "postern-language"

    /// Whether an English text is meant for users: some language has a translation of it.
    package func isForUsers(_ text: String) -> Bool { all.contains { $0.knows(text) } }

    /// The first available language; English if none is available.
    /// - Parameters:
    ///   - tags: the tags of the app's request, the preferred one first.
    ///   - accepted: the field `Accept-Language` (RFC 9110 section 12.5.4).
    package func best(_ tags: [String], accepted: String?) -> Catalogue {
        for tag in tags + Self.accepted(accepted ?? "") {
            // From the most specific on: pt-br, then pt.
            var parts = tag.lowercased().split(separator: "-")
            while !parts.isEmpty {
                let wanted = parts.joined(separator: "-")
                if let found = all.first(where: { $0.tag == wanted }) { return found }
                parts.removeLast()
            }
        }
        return .english
    }

    /// The tags of an `Accept-Language`, the preferred one first.
    private static func accepted(_ field: String) -> [String] {
        let ranges = field.prefix(1_000).split(separator: ",").prefix(20).map {
            range -> (tag: String, quality: Double) in
            let parts = range.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
            let quality =
                parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 }
                ?? 1
            return (parts.first ?? "", quality)
        }
        // Stable: of two with the same quality the first.
        return ranges.enumerated().filter { $0.element.quality > 0 && !$0.element.tag.isEmpty }
            .sorted { ($1.element.quality, $0.offset) < ($0.element.quality, $1.offset) }.map(
                \.element.tag)
    }
}
