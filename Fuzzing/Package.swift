// swift-tools-version: 6.2 Fuzz targets (libFuzzer). A package of its own: its modules are those of
// the project, by symbolic link, and built with the sanitizers' instrumentation, which the
// project's own builds must not have.
import PackageDescription

/// Optimised, since executions count, with all traps and assertions in.
let instrumented: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .unsafeFlags([
        "-O", "-assert-config", "Debug", "-enable-testing", "-parse-as-library",
        "-sanitize=fuzzer,address",
    ]),
]

func module(
    _ name: String, _ dependencies: [Target.Dependency] = [], plugins: [Target.PluginUsage] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Modules/\(name)",
        swiftSettings: instrumented, plugins: plugins)
}

let package = Package(
    name: "postern-fuzzing",
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        .plugin(
            name: "EmbedText", capability: .buildTool(), dependencies: ["embed-text"],
            path: "Modules/EmbedText"),
        .executableTarget(name: "embed-text", path: "Modules/embed-text"),
        .systemLibrary(name: "COpenSSL", path: "Modules/COpenSSL", pkgConfig: "libcrypto"),
        .systemLibrary(name: "CMilter", path: "Modules/CMilter", pkgConfig: "milter"),
        .systemLibrary(name: "CZlib", path: "Modules/CZlib", pkgConfig: "zlib"),
        module("Support"),
        module("WebAuthn", ["MailCrypto", "Support"]),
        module("Concurrency"),
        module("InternetMessage", ["Support"]),
        module("MailCrypto", ["COpenSSL"]),
        module("MailAuth", ["InternetMessage", "MailCrypto", "Support"]),
        module("LeakSearch", ["CZlib", "InternetMessage", "Support"]),
        module(
            "RelayCore", ["InternetMessage", "LeakSearch", "MailAuth", "MailCrypto", "Support"]),
        module("CEL", ["Support"]),
        module("RiskPolicy", ["CEL", "Support", .product(name: "Yams", package: "Yams")]),
        module("PosternMetrics"),
        module("Milter", ["CMilter", "Concurrency"]),
        module(
            "RelayMilter",
            [
                "Concurrency", "Milter", "RelayCore", "MailAuth", "MailCrypto", "InternetMessage",
                "PosternMetrics", "Support",
                .product(name: "Logging", package: "swift-log"),
            ]),
        module("MilterTesting", ["Milter"]),
        module("TestSupport", ["CEL", .product(name: "Logging", package: "swift-log")]),
        module("MailTesting", ["InternetMessage", "MailAuth", "RelayCore", "TestSupport"]),
        module("Database"),
        module("Accounts", ["Database", "Support"]),
        module(
            "IdentityParsing", ["Accounts", "InternetMessage", "MailCrypto", "Support"],
            plugins: [.plugin(name: "EmbedText")]),
        module("DNSWire", ["InternetMessage", "MailAuth", "Support"]),
        .executableTarget(
            name: "fuzz",
            dependencies: [
                "CEL", "InternetMessage", "LeakSearch", "MailAuth", "MailTesting", "RelayCore",
                "RiskPolicy",
                "Milter",
                "MilterTesting",
                "RelayMilter",
                "IdentityParsing", "DNSWire", "Support", "WebAuthn",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: instrumented,
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])]),
    ],
    swiftLanguageModes: [.v6]
)
