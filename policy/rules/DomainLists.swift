// Domains of inboxes by kind, as part of the program: nothing is looked up elsewhere.

/// The files of `policy/rules/domains` as they were when the program was built, one domain a line.
package enum DomainLists {
    package static let disposable = lines(PackageResources.disposable_txt)
    package static let relay = lines(PackageResources.relay_txt)
    package static let providers = lines(PackageResources.providers_txt)

    private static func lines(_ octets: [UInt8]) -> [String] {
        octets.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }).filter { $0.first != UInt8(ascii: "#") }
            .map { String(decoding: $0, as: UTF8.self) }
    }
}
