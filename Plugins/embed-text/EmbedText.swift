// embed-text OUTPUT FOLDER FILE…: writes a Swift file with the text of each FILE. String literals,
// as the compiler reads an array of octets a thousand times slower.

import Glibc

@main enum EmbedText {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count >= 2 else { fail("usage: embed-text OUTPUT FOLDER FILE…") }
        let (output, folder, files) = (arguments[1], arguments[2] + "/", arguments.dropFirst(2))
        let paths = files.map { file in
            guard file.hasPrefix(folder) else { fail("\(file) is not in \(folder)") }
            return String(file.dropFirst(folder.count))
        }
        let bases = Dictionary(grouping: paths) { Entry.name(of: Entry.base(of: $0)) }
        let entries = zip(files, paths).map { file, path in
            let base = Entry.name(of: Entry.base(of: path))
            return Entry(
                path: path, name: bases[base]?.count == 1 ? base : Entry.name(of: path),
                text: text(of: file))
        }
        var names: [String: String] = [:]
        for entry in entries {
            if let other = names.updateValue(entry.path, forKey: entry.name) {
                fail("\(other) and \(entry.path) have one name: \(entry.name)")
            }
        }
        write(source(entries), to: output)
    }

    struct Entry {
        /// Below the target's folder.
        let path: String
        /// That of the file, `sign_in_html` for `Templates/sign-in.html`; of the whole path
        /// where several files have it.
        let name: String
        let text: String

        static func base(of path: String) -> String {
            path.split(separator: "/").last.map(String.init) ?? ""
        }

        static func name(of text: String) -> String {
            let letters = String(text.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
            return letters.first?.isNumber == true ? "_" + letters : letters
        }

        /// Multi-line, raw: all that must not occur is the end, an escape, and what the
        /// compiler reads as another line end.
        var literal: String {
            for mark in ["\"\"\"###", "\\###", "\r", "\0"]
            where text.utf8.firstRange(of: mark.utf8) != nil {
                fail("\(path) contains \(mark.debugDescription), which cannot be embedded")
            }
            return "###\"\"\"\n\(text)\n\"\"\"###"
        }
    }

    static func source(_ entries: [Entry]) -> String {
        """
        // Written by embed-text.

        /// The text files of this target's folder, as they were when the program was built.
        enum Embedded {
            /// All of them in the order of their paths, which are relative to the folder.
            static let files: [(path: String, text: String)] = [
        \(entries.map { "        (\($0.path.debugDescription), \($0.name)),\n" }.joined())    ]

        \(entries.map { "    static let \($0.name) = \($0.literal)\n" }.joined())}

        """
    }

    static func text(of path: String) -> String {
        guard let file = fopen(path, "r") else {
            fail("\(path): \(String(cString: strerror(errno)))")
        }
        defer { fclose(file) }
        var octets: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = fread(&part, 1, part.count, file)
            if count == 0 { break }
            octets += part[..<count]
        }
        guard ferror(file) == 0, let text = String(validating: octets, as: UTF8.self) else {
            fail("\(path) cannot be read, or is not UTF-8")
        }
        return text
    }

    static func write(_ text: String, to path: String) {
        guard let file = fopen(path, "w") else {
            fail("\(path): \(String(cString: strerror(errno)))")
        }
        let octets = Array(text.utf8)
        guard fwrite(octets, 1, octets.count, file) == octets.count, fclose(file) == 0 else {
            fail("\(path) cannot be written")
        }
    }

    static func fail(_ message: String) -> Never {
        let line = Array("embed-text: \(message)\n".utf8)
        _ = Glibc.write(STDERR_FILENO, line, line.count)
        exit(1)
    }
}
