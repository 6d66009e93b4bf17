// The allowed imports of pure modules: nothing that blocks, reads a clock or does I/O.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct PureModulesTests {
    /// Glibc is allowed if one function of it searches memory or converts a character set.
    @Test(arguments: [
        ("Sources/Support", ["Glibc", "Swift"]),
        ("Sources/SharedSignals", ["Support"]),
        ("Sources/WebAuthn", ["MailCrypto", "Support"]),
        ("Sources/InternetMessage", ["Glibc", "Support"]),
        ("Sources/MailCrypto", ["COpenSSL", "Support", "Synchronization"]),
        (
            "Sources/MailAuth",
            ["Glibc", "InternetMessage", "MailCrypto", "Support", "Synchronization"]
        ),
        ("Sources/LeakSearch", ["CZlib", "InternetMessage", "Support"]),
        (
            "Sources/RelayCore",
            [
                "InternetMessage", "LeakSearch", "MailAuth", "MailCrypto", "Support",
                "Synchronization",
            ]
        ),
        ("policy/CEL", ["Foundation", "Support", "Synchronization"]),
        ("Sources/Declaration", ["CEL", "RiskPolicy", "Support", "Yams"]),
        ("policy/RiskPolicy", ["CEL", "Foundation", "Support", "Yams"]),
    ])
    func pureModule_imports_areOnlyThoseAllowed(folder: String, allowed: [String]) throws {
        let files =
            FileManager.default.enumerator(atPath: Folders.package.appending(path: folder).path)?
            .allObjects ?? []
        let sources = files.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }
        try #require(!sources.isEmpty)
        for source in sources {
            let text = try String(
                contentsOf: Folders.package.appending(path: "\(folder)/\(source)"), encoding: .utf8)
            for line in text.split(separator: "\n")
            where line.hasPrefix("import ") || line.hasPrefix("@") && line.contains(" import ") {
                guard let module = line.split(separator: " ").last else { continue }
                #expect(allowed.contains(String(module)), "\(folder)/\(source): \(line)")
            }
        }
    }
}
