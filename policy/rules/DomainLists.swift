// Domains of inboxes by kind, as part of the program: no lookup is needed.

/// The files of `policy/rules/domains` as they were when the program was built, one domain a line.
package enum DomainLists {
    package static let disposable = lines(Embedded.disposable_txt)
    package static let relay = lines(Embedded.relay_txt)
    package static let providers = lines(Embedded.providers_txt)

    private static func lines(_ text: String) -> [String] {
        text.utf8.split(separator: UInt8(ascii: "\n")).filter { $0.first != UInt8(ascii: "#") }.map
        { String(Substring($0)) }
    }
}
