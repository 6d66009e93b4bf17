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

    /// What permits or forbids never reads at a standby: only these have a `ListingStore`.
    @Test func listingStore_holders_areThoseThatDecideNothing() throws {
        let allowed: Set = [
            "Accounts/ListingStore.swift", "API/Accounts/AccountRoutes.swift",
            "API/Rejections/RejectionRoutes.swift", "Decisions/Backtest/BacktestRun.swift",
            "Decisions/Status/StatusBacktest.swift", "Decisions/Store+Decisions.swift",
            "PosternConfiguration/Installation.swift", "Service/Web/HTTPRoutes.swift",
            "postern/Installation/Store/AuditCommand.swift",
            "postern/Policy/Decisions/DecisionCommand.swift",
            "postern/Policy/Policies/PolicyBacktest.swift",
            "postern/Policy/Policies/PolicyStats.swift",
            "postern/Policy/Policies/StatusBacktestText.swift", "postern/Support/Options.swift",
        ]
        let sources = Folders.package.appending(path: "Sources")
        let files = FileManager.default.enumerator(atPath: sources.path)?.allObjects ?? []
        let holders = try files.compactMap { $0 as? String }.filter { file in
            guard file.hasSuffix(".swift") else { return false }
            let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
            return ["ListingStore", ".listings", "withListings"].contains { text.contains($0) }
        }
        #expect(Set(holders) == allowed)
    }
}
