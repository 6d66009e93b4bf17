// The public messages, if they exist.

import Foundation
import InternetMessage

enum BenchCorpus {
    private static let root: URL =
        ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"].map { URL(fileURLWithPath: $0) }
        ?? URL(fileURLWithPath: FileManager.default.currentDirectoryPath).appendingPathComponent(
            "../shared/conformance"
        )
        .standardizedFileURL

    /// Every file of a folder, with the line ends that Postfix passes on.
    static func messages(_ folder: String) -> [(name: String, bytes: [UInt8])] {
        let base = root.appendingPathComponent(folder)
        guard
            let files = FileManager.default.enumerator(
                at: base, includingPropertiesForKeys: [.isRegularFileKey])
        else {
            print("\(folder): not there; POSTERN_CONFORMANCE names the folder of public test data")
            return []
        }
        var messages: [(String, [UInt8])] = []
        for case let file as URL in files
        where (try? file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile) == true {
            guard !file.path.contains("/LICENSES/"), let data = try? Data(contentsOf: file) else {
                continue
            }
            let name = folder + String(file.path.dropFirst(base.path.count))
            messages.append(
                (
                    name,
                    name.hasSuffix(".ics") ? calendar + crlf([UInt8](data)) : crlf([UInt8](data))
                ))
        }
        return messages.sorted { $0.0 < $1.0 }
    }

    private static let calendar = Array(
        "Subject: Accepted\r\nMIME-Version: 1.0\r\nContent-Type: text/calendar; method=REPLY\r\n\r\n"
            .utf8)

    /// A header section as the user's server sends it.
    static func header(_ header: HeaderSection, author: String, recipient: String) -> HeaderSection
    {
        let dropped: Set<String> = ["from", "sender", "reply-to"]
        return HeaderSection(
            header.fields.filter { !dropped.contains($0.name.lowercased()) && $0.controls.isEmpty }
                + [HeaderField("From", "Anna <\(author)>"), HeaderField("X-To", recipient)])
    }

    static func crlf(_ bytes: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + bytes.count / 32)
        var last: UInt8 = 0
        for octet in bytes {
            if octet == 0x0A, last != 0x0D { output.append(0x0D) }
            output.append(octet)
            last = octet
        }
        return output
    }
}
