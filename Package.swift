// swift-tools-version: 6.2
// Dependencies point one way (docs/ARCHITECTURE.md); `make build` checks the imports against this
// file.
import PackageDescription

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

/// Pure modules are optimised in debug builds too: the tests push megabytes and whole
/// corpora through them.
let pure: [SwiftSetting] = strict + [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// How `postern` is linked for release: with the Swift libraries within, so that only the code of
/// them that is used is in its memory, and a machine that runs it needs no Swift. The linker is the
/// toolchain's own; relative relocations are packed (glibc 2.36, Debian 12), as a table of four
/// megabytes would be read at each start; no other name is exported than Milter's, as nobody looks
/// one up.
let standalone: [LinkerSetting] = [
    .unsafeFlags(
        [
            "-static-stdlib", "-use-ld=lld", "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs",
            "-Xlinker",
            "--no-export-dynamic",
        ]
            + ["_FoundationICU", "_FoundationCShims", "_FoundationCollections", "CoreFoundation"]
            .map { "-l\($0)" },
        .when(platforms: [.linux], configuration: .release))
]

// Products of others.
let argumentParser = Target.Dependency.product(
    name: "ArgumentParser", package: "swift-argument-parser")
let asyncHTTPClient = Target.Dependency.product(
    name: "AsyncHTTPClient", package: "async-http-client")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore = Target.Dependency.product(name: "HummingbirdCore", package: "hummingbird")
let hummingbirdTesting = Target.Dependency.product(
    name: "HummingbirdTesting", package: "hummingbird")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let mustache = Target.Dependency.product(name: "Mustache", package: "swift-mustache")
let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioHTTPTypes = Target.Dependency.product(name: "NIOHTTPTypes", package: "swift-nio-extras")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let nioTLS = Target.Dependency.product(name: "NIOTLS", package: "swift-nio")
let serviceLifecycle = Target.Dependency.product(
    name: "ServiceLifecycle", package: "swift-service-lifecycle")
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let histogram = Target.Dependency.product(name: "Histogram", package: "hdrhistogram-swift")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")

/// The plugin that makes the text files of a target part of it.
let embedText = Target.PluginUsage.plugin(name: "EmbedText")

/// Only `make bench` and `make bench-try` build the benchmarks: with POSTERN_BENCH=1.
let benchmarks: [Target] = [
    .executableTarget(
        name: "AuthBench",
        dependencies: ["InternetMessage", "MailAuth", "MailCrypto", argumentParser],
        path: "Benchmarks/AuthBench", swiftSettings: strict),
    .executableTarget(
        name: "RelayBench",
        dependencies: [
            "BenchReport", "HostileMail", "InternetMessage", "MailAuth", "MailTesting", "RelayCore",
            argumentParser,
        ],
        path: "Benchmarks/RelayBench",
        swiftSettings: strict),
    .executableTarget(
        name: "PolicyBench", dependencies: ["BenchReport", "CEL", "RiskPolicy", argumentParser],
        path: "Benchmarks/PolicyBench", swiftSettings: strict),

    .executableTarget(
        name: "DecisionBench",
        dependencies: [
            "Accounts", "API", "BenchReport", "BenchStores", "Concurrency", "Database", "Decisions",
            "HTTP", "PolicyRules",
            "RiskPolicy", "SignIn", argumentParser, hummingbird, logging, nioCore,
        ], path: "Benchmarks/DecisionBench", swiftSettings: strict),
    .executableTarget(
        name: "http-load", dependencies: ["BenchReport", argumentParser],
        path: "Benchmarks/HTTPLoad", swiftSettings: strict),

    .executableTarget(
        name: "SignInBench",
        dependencies: [
            "Accounts", "API", "BenchReport", "BenchStores", "Database", "HTTP", "InternetMessage",
            "Mail", "PasskeyTesting",
            "Portal", "RelayCore", "SignIn", "Support", "WebAuthn", argumentParser, asyncHTTPClient,
            logging, nioCore, nioHTTP1,
            nioPosix,
        ], path: "Benchmarks/SignInBench", swiftSettings: strict),

    .target(
        name: "BenchReport", dependencies: [argumentParser, histogram],
        path: "Benchmarks/BenchReport",
        swiftSettings: strict),
    .target(
        name: "BenchStores",
        dependencies: [
            "Accounts", "Database", "InternetMessage", "MailCrypto", "PosternPostgres",
            "PosternSQLite", "PostgresHarness",
            argumentParser,
        ], path: "Benchmarks/BenchStores", swiftSettings: strict),
    .executableTarget(
        name: "bench-filter", dependencies: ["CMilter", "COpenSSL"], path: "Benchmarks/BenchFilter",
        linkerSettings: [
            .linkedLibrary("milter"), .linkedLibrary("crypto"), .linkedLibrary("pthread"),
        ]),
    .executableTarget(
        name: "MailBench",
        dependencies: [
            "Accounts", "BenchReport", "BenchStores", "Database", "DNSClient", "InternetMessage",
            "MailAuth", "MailCrypto",
            "PosternConfiguration", "PostfixHarness", "PostgresHarness", "Relay", "RelayCore",
            "RelayHarness", argumentParser,
        ], path: "Benchmarks/MailBench", swiftSettings: strict),
    .executableTarget(
        name: "StoreBench",
        dependencies: [
            "Accounts", "BenchReport", "BenchStores", "Database", "InternetMessage", "MailCrypto",
            "PosternConfiguration",
            "PosternPostgres", "PosternSQLite", "PostfixHarness", "PostgresHarness", "Relay",
            argumentParser,
        ], path: "Benchmarks/StoreBench", swiftSettings: strict),
    .executableTarget(
        name: "SideBySideBench",
        dependencies: [
            "Accounts", "Administration", "BenchReport", "Database", "Events", "InternetMessage",
            "MailAuth", "MailCrypto",
            "PosternPostgres", "PostgresHarness", "SignIn", "Support", argumentParser, logging,
            nioCore, nioHTTP1, nioPosix,
        ], path: "Benchmarks/SideBySideBench", swiftSettings: strict),
]

let package = Package(
    name: "postern",
    products: [
        .executable(name: "postern", targets: ["postern"])
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.1"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    ],
    targets: [
        // MARK: What builds
        .plugin(name: "EmbedText", capability: .buildTool(), dependencies: ["embed-text"]),
        .executableTarget(name: "embed-text", path: "Plugins/embed-text", swiftSettings: strict),

        // MARK: C libraries (Debian -dev packages)
        .systemLibrary(
            name: "COpenSSL", path: "Sources/COpenSSL", pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CMilter", path: "milter/CMilter", pkgConfig: "milter",
            providers: [.apt(["libmilter-dev"])]),
        .systemLibrary(
            name: "CAres", path: "Sources/CAres", pkgConfig: "libcares",
            providers: [.apt(["libc-ares-dev"])]),
        .systemLibrary(
            name: "CSQLite", path: "Sources/CSQLite", pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(
            name: "CPQ", path: "Sources/CPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(
            name: "CZlib", path: "Sources/CZlib", pkgConfig: "zlib",
            providers: [.apt(["zlib1g-dev"])]),

        // MARK: The ground floor: one of each small thing, for all
        .target(name: "Support", swiftSettings: pure),
        .target(name: "SharedSignals", dependencies: ["Support"], swiftSettings: pure),
        .target(name: "Concurrency", swiftSettings: strict),
        .target(
            name: "Languages", dependencies: ["Support", mustache], swiftSettings: strict,
            plugins: [embedText]),

        // MARK: Pure modules: no I/O, no clock
        .target(name: "InternetMessage", dependencies: ["Support"], swiftSettings: pure),
        .target(name: "MailCrypto", dependencies: ["COpenSSL"], swiftSettings: pure),
        .target(
            name: "MailAuth", dependencies: ["InternetMessage", "MailCrypto", "Support"],
            swiftSettings: pure),
        .target(
            name: "LeakSearch", dependencies: ["CZlib", "InternetMessage", "Support"],
            swiftSettings: pure),
        .target(
            name: "RelayCore",
            dependencies: ["InternetMessage", "LeakSearch", "MailAuth", "MailCrypto", "Support"],
            swiftSettings: pure),
        .target(
            name: "WebAuthn", dependencies: ["MailCrypto", "Support"], swiftSettings: pure),
        .target(name: "CEL", dependencies: ["Support"], path: "policy/CEL", swiftSettings: pure),
        .target(
            name: "RiskPolicy", dependencies: ["CEL", "Support", yams],
            path: "policy/RiskPolicy", swiftSettings: pure),
        .target(
            name: "Declaration", dependencies: ["CEL", "RiskPolicy", yams], swiftSettings: pure,
            plugins: [embedText]),
        .target(
            name: "PolicyRules", path: "policy/rules", swiftSettings: strict,
            plugins: [embedText]),

        // MARK: The world outside
        .target(name: "PosternMetrics", swiftSettings: strict),
        .target(
            name: "Transport", dependencies: [asyncHTTPClient, nioCore, nioSSL],
            swiftSettings: strict),
        .target(
            name: "DNSClient",
            dependencies: ["CAres", "Concurrency", "InternetMessage", "MailAuth", "Support"],
            swiftSettings: strict),
        .target(
            name: "Milter", dependencies: ["CMilter", "Concurrency"], path: "milter/Milter",
            swiftSettings: strict,
            // libmilter has to find this one (LibmilterSignals.swift).
            linkerSettings: [
                .unsafeFlags(["-Xlinker", "--export-dynamic-symbol=sigwait"])
            ]),
        .target(
            name: "RelayMilter",
            dependencies: [
                "Concurrency", "InternetMessage", "MailAuth", "MailCrypto", "Milter",
                "PosternMetrics", "RelayCore", "Support",
                logging,
            ],
            path: "milter/RelayMilter", swiftSettings: strict),
        .target(
            name: "MilterTesting", dependencies: ["Milter"], path: "milter/MilterTesting",
            swiftSettings: strict),
        .target(
            name: "PostfixSetup", dependencies: ["Concurrency"], path: "milter/postfix",
            exclude: ["main.cf", "master.cf"],
            swiftSettings: strict),
        .target(
            name: "Database", dependencies: ["Concurrency", "MailCrypto", "Support", nioPosix],
            swiftSettings: strict),
        .target(
            name: "PosternSQLite", dependencies: ["Concurrency", "CSQLite", "Database"],
            swiftSettings: strict),
        .target(
            name: "PosternPostgres", dependencies: ["Concurrency", "CPQ", "Database", "Support"],
            swiftSettings: strict),
        .target(
            name: "Accounts",
            dependencies: [
                "Database", "InternetMessage", "MailAuth", "MailCrypto", "RelayCore",
                "SharedSignals", "Support",
            ],
            swiftSettings: strict,
            plugins: [embedText]),
        .target(
            name: "SignIn",
            dependencies: [
                "Accounts", "Database", "InternetMessage", "MailCrypto", "SharedSignals", "Support",
                "Transport", "WebAuthn",
                asyncHTTPClient, logging, nioCore, nioSSL,
            ], swiftSettings: strict,
            plugins: [embedText]),
        .target(
            name: "Decisions",
            dependencies: [
                "Accounts", "CEL", "Concurrency", "Database", "InternetMessage", "MailCrypto",
                "PolicyRules", "PosternMetrics",
                "RiskPolicy", "SignIn", "Support", "WebAuthn", logging,
            ], swiftSettings: strict),
        .target(
            name: "HTTP",
            dependencies: [
                "Accounts", "Database", "MailAuth", "MailCrypto", "Support", "Transport", httpTypes,
                hummingbird, hummingbirdCore,
                logging, nioCore, nioHTTP1, nioHTTPTypes, nioPosix, nioSSL, nioTLS,
                serviceLifecycle,
            ], swiftSettings: strict),
        .target(
            name: "API",
            dependencies: [
                "Accounts", "CEL", "Database", "Decisions", "Events", "HTTP", "InternetMessage",
                "Languages", "MailCrypto",
                "PosternMetrics", "RelayCore", "RiskPolicy", "SharedSignals", "SignIn", "Support",
                "WebAuthn", httpTypes,
                hummingbird, logging, serviceLifecycle,
            ], swiftSettings: strict,
            plugins: [embedText]),
        .target(
            name: "Portal",
            dependencies: [
                "Accounts", "Database", "Decisions", "HTTP", "InternetMessage", "Languages", "Mail",
                "MailCrypto", "PersonalData", "RelayCore",
                "SignIn", "Support", "WebAuthn", httpTypes, hummingbird, logging,
            ], swiftSettings: strict,
            plugins: [embedText]),
        .target(
            name: "Mail",
            dependencies: [
                "Accounts", "Concurrency", "InternetMessage", "Languages", "MailCrypto",
                "RelayCore", "SignIn", "Support",
                "Transport", nioCore, nioEmbedded, nioSSL, nioTLS,
            ], swiftSettings: strict,
            plugins: [embedText]),

        // MARK: An installation, and what runs on it
        .target(
            name: "PosternConfiguration",
            dependencies: [
                "Accounts", "DNSClient", "Database", "HTTP", "InternetMessage", "MailCrypto",
                "PosternPostgres", "PosternSQLite", "RelayCore",
                "RiskPolicy", "SignIn", "Support", "WebAuthn", yams,
            ], swiftSettings: strict),
        .target(
            name: "Monitoring",
            dependencies: [
                "Accounts", "Database", "Decisions", "PosternConfiguration", "PosternMetrics",
                "RelayCore", "Support", logging,
            ],
            swiftSettings: strict),
        .target(
            name: "Relay",
            dependencies: [
                "Accounts", "Concurrency", "Database", "DNSClient", "InternetMessage", "Languages",
                "Mail", "MailAuth",
                "MailCrypto", "Milter", "PosternConfiguration", "PosternMetrics", "RelayCore",
                "RelayMilter", "Support", logging,
                serviceLifecycle,
            ], swiftSettings: strict),
        .target(
            name: "Events",
            dependencies: [
                "Accounts", "Concurrency", "Database", "InternetMessage", "MailAuth", "MailCrypto",
                "PosternConfiguration",
                "PosternMetrics", "SharedSignals", "SignIn", "Support", "Transport",
                asyncHTTPClient, logging, nioCore, nioHTTP1,
                nioSSL, serviceLifecycle,
            ], swiftSettings: strict),
        .target(
            name: "Doctor",
            dependencies: [
                "Accounts", "Database", "Decisions", "InternetMessage", "Mail", "MailAuth",
                "Milter", "Monitoring",
                "PosternConfiguration", "PostfixSetup", "Relay", "RelayCore", "Support",
                "Transport", asyncHTTPClient, nioCore,
                nioPosix,
            ], swiftSettings: strict),
        .target(
            name: "PersonalData",
            dependencies: ["Accounts", "Database", "InternetMessage", "RelayCore", "Support"],
            swiftSettings: strict),
        .target(
            name: "Administration",
            dependencies: [
                "Accounts", "CEL", "Database", "Decisions", "Declaration", "Events",
                "InternetMessage", "MailAuth", "MailCrypto",
                "Monitoring", "PosternConfiguration", "PosternPostgres", "PosternSQLite", "Relay",
                "RelayCore", "RiskPolicy", "SignIn",
                "Support",
            ], swiftSettings: strict),
        .target(
            name: "Service",
            dependencies: [
                "Accounts", "Administration", "API", "Concurrency", "Database", "Decisions",
                "Doctor", "Events", "HTTP", "Mail",
                "MailAuth",
                "MailCrypto", "Milter", "Monitoring", "PersonalData", "Portal",
                "PosternConfiguration", "PosternMetrics", "PosternPostgres", "Relay",
                "RelayCore", "SignIn", "WebAuthn", hummingbird, logging, serviceLifecycle,
                unixSignals,
            ], swiftSettings: strict),

        .target(
            name: "Rehearsal",
            dependencies: [
                "Accounts", "Administration", "API", "CEL", "Concurrency", "Database", "Decisions",
                "Events", "HTTP",
                "InternetMessage", "Languages", "MailAuth", "MailCrypto", "Milter", "MilterTesting",
                "PosternConfiguration",
                "PosternSQLite", "RelayCore", "RiskPolicy", "Service", "SignIn", "Support",
                "Transport", asyncHTTPClient,
                httpTypes,
                hummingbird, logging, nioCore, nioHTTP1, nioPosix, serviceLifecycle, yams,
            ], swiftSettings: strict, plugins: [embedText]),

        // MARK: The command line, a room for the commands of each subject
        .executableTarget(
            name: "postern",
            dependencies: [
                "Accounts", "Administration", "CEL", "Concurrency", "Database", "Decisions",
                "Declaration", "DNSClient", "Doctor",
                "Events", "HTTP", "InternetMessage", "Mail", "MailAuth", "Milter", "Monitoring",
                "PosternConfiguration",
                "PostfixSetup", "Rehearsal", "Relay", "RelayCore", "RiskPolicy", "Service",
                "SharedSignals", "SignIn", "Support",
                "WebAuthn",
                argumentParser, asyncHTTPClient, logging,
            ], swiftSettings: strict, linkerSettings: standalone),

        // MARK: Tests
        .target(
            name: "HostileMail", dependencies: ["InternetMessage", "Support"],
            path: "Tests/HostileMail",
            swiftSettings: strict),
        .testTarget(
            name: "SupportTests", dependencies: ["Support", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "LanguagesTests", dependencies: ["Languages", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "InternetMessageTests",
            dependencies: ["InternetMessage", "Support", "TestSupport"], exclude: ["Vectors"],
            swiftSettings: strict),
        .target(
            name: "PasskeyTesting", dependencies: ["MailCrypto", "Support", "WebAuthn"],
            path: "Tests/PasskeyTesting",
            swiftSettings: strict),
        .testTarget(
            name: "WebAuthnTests",
            dependencies: ["MailCrypto", "PasskeyTesting", "Support", "TestSupport", "WebAuthn"],
            swiftSettings: strict),
        .testTarget(
            name: "SharedSignalsTests", dependencies: ["SharedSignals", "Support", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "DeclarationTests", dependencies: ["Declaration", "RiskPolicy", "TestSupport"],
            exclude: ["Tools", "Vectors"],
            swiftSettings: strict),
        .testTarget(
            name: "MailCryptoTests", dependencies: ["MailCrypto", "Support", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "MailAuthTests",
            dependencies: [
                "InternetMessage", "MailAuth", "MailCrypto", "MailTesting", "Support",
                "TestSupport",
            ],
            exclude: ["Vectors"],
            swiftSettings: strict),
        .testTarget(
            name: "LeakSearchTests", dependencies: ["InternetMessage", "LeakSearch", "Support"],
            swiftSettings: strict),
        .target(
            name: "TestSupport", dependencies: ["CEL", "Concurrency", logging],
            path: "Tests/TestSupport",
            swiftSettings: strict),
        .target(
            name: "MailTesting",
            dependencies: ["InternetMessage", "MailAuth", "RelayCore", "TestSupport"],
            path: "Tests/MailTesting", exclude: ["Tools"],
            swiftSettings: strict),
        .target(
            name: "DNSTesting", dependencies: ["DNSClient", "MailAuth"], path: "Tests/DNSTesting",
            swiftSettings: strict),
        .testTarget(
            name: "DNSClientTests",
            dependencies: ["DNSClient", "DNSTesting", "MailAuth", "TestSupport"],
            swiftSettings: strict),
        .target(
            name: "PairTesting", dependencies: ["TestSupport"], path: "Tests/PairTesting",
            swiftSettings: pure),
        .testTarget(
            name: "RelayCoreTests",
            dependencies: [
                "Concurrency", "HostileMail", "InternetMessage", "LeakSearch", "MailAuth",
                "MailCrypto", "MailTesting",
                "MilterTesting", "PairTesting", "RelayCore", "RelayMilter", "Support",
                "TestSupport",
            ],
            exclude: ["Vectors", "Tools"], swiftSettings: strict),
        .testTarget(
            name: "MilterTests",
            dependencies: [
                "InternetMessage", "LeakSearch", "MailAuth", "MailCrypto", "MailTesting", "Milter",
                "MilterTesting",
                "PosternMetrics", "RelayCore", "RelayMilter", "TestSupport", logging,
            ], swiftSettings: strict),
        .target(
            name: "PostgresHarness", dependencies: ["Concurrency"], path: "Tests/PostgresHarness",
            swiftSettings: strict),
        .target(
            name: "StoreTesting",
            dependencies: [
                "Accounts", "Database", "PosternPostgres", "PosternSQLite", "PostgresHarness",
                "RelayCore",
            ],
            path: "Tests/StoreTesting", swiftSettings: strict),
        .testTarget(
            name: "StoreTests",
            dependencies: [
                "Accounts", "Administration", "CEL", "Database", "Decisions", "Declaration",
                "Events", "InternetMessage",
                "MailAuth", "MailCrypto", "MailTesting", "Monitoring", "PasskeyTesting",
                "PersonalData", "PosternPostgres", "PosternSQLite",
                "PostgresHarness", "Relay", "RelayCore", "RiskPolicy", "SharedSignals", "SignIn",
                "StoreTesting", "Support",
                "TestSupport", "WebAuthn", logging,
            ],
            exclude: ["Vectors"], swiftSettings: strict),
        .testTarget(
            name: "PortalTests",
            dependencies: [
                "Accounts", "API", "Database", "Decisions", "HTTP", "InternetMessage", "Languages",
                "Mail",
                "MailCrypto", "PasskeyTesting",
                "PersonalData", "Portal", "PosternPostgres", "PosternSQLite", "PostfixHarness",
                "PostgresHarness", "RelayCore",
                "SignIn", "StoreTesting", "Support", "TestSupport", "WebAuthn", httpTypes,
                hummingbird, hummingbirdTesting,
                logging,
            ], swiftSettings: strict),
        .testTarget(
            name: "MailTests",
            dependencies: [
                "Accounts", "Database", "InternetMessage", "Languages", "Mail", "MailAuth",
                "MailCrypto", "PosternSQLite",
                "PostfixHarness", "RelayCore", "StoreTesting", "TestSupport",
            ], swiftSettings: strict),
        .testTarget(
            name: "SignInTests",
            dependencies: [
                "Accounts", "Database", "InternetMessage", "MailCrypto", "PosternSQLite", "SignIn",
                "StoreTesting", "Support",
                "TestSupport", asyncHTTPClient, logging, nioCore, nioHTTP1, nioPosix, nioSSL,
            ], exclude: ["Vectors", "Tools"], swiftSettings: strict),
        .testTarget(
            name: "DecisionTests",
            dependencies: [
                "Accounts", "CEL", "Database", "Decisions", "InternetMessage", "MailCrypto",
                "PasskeyTesting", "PolicyRules",
                "PosternSQLite", "PostfixHarness", "RiskPolicy", "SignIn", "StoreTesting",
                "Support", "TestSupport", "WebAuthn",
                logging,
            ], exclude: ["default-policy-versions.txt"], swiftSettings: strict),
        .testTarget(
            name: "APITests",
            dependencies: [
                "Accounts", "API", "Database", "Decisions", "DNSClient", "DNSTesting", "Doctor",
                "Events", "HTTP",
                "InternetMessage", "Languages", "MailAuth", "MailCrypto", "PasskeyTesting",
                "PersonalData", "PolicyRules",
                "postern", "PosternConfiguration", "PosternMetrics", "PosternSQLite",
                "PostfixHarness", "RelayCore", "RiskPolicy",
                "Service", "SharedSignals", "SignIn", "StoreTesting", "Support", "TestSupport",
                "WebAuthn", hummingbird,
                hummingbirdTesting, logging, nioCore, nioPosix, yams,
            ], exclude: ["Live/schemathesis.toml"], swiftSettings: strict),
        .testTarget(
            name: "EventTests",
            dependencies: [
                "Accounts", "Database", "Decisions", "DNSClient", "DNSTesting", "Events",
                "InternetMessage", "MailAuth",
                "MilterTesting", "Monitoring", "postern", "PosternConfiguration", "PosternSQLite",
                "PostfixHarness",
                "PostgresHarness", "RelayHarness", "SharedSignals", "SignIn", "StoreTesting",
                "Support", "TestSupport", logging,
                nioCore, nioHTTP1, nioPosix, nioSSL,
            ],
            exclude: ["Certificates", "Tools"], swiftSettings: strict),
        .testTarget(
            name: "RehearsalTests",
            dependencies: [
                "MailCrypto", "postern", "PostfixHarness", "Rehearsal", "SignIn", "Support",
                "TestSupport",
            ],
            exclude: ["Tools"], swiftSettings: strict),
        .testTarget(
            name: "FuzzTests",
            dependencies: [
                "CEL", "DNSClient", "InternetMessage", "LeakSearch", "MailAuth", "MailTesting",
                "Milter", "MilterTesting",
                "RelayCore", "RelayMilter", "RiskPolicy", "SignIn", "Support", "TestSupport",
                "WebAuthn", logging,
            ], swiftSettings: strict),
        .testTarget(name: "CELTests", dependencies: ["CEL", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "RiskPolicyTests", dependencies: ["CEL", "RiskPolicy", "TestSupport", yams],
            exclude: ["default-missing.yaml", "Vectors"], swiftSettings: strict),
        .testTarget(
            name: "PosternTests",
            dependencies: [
                "Accounts", "Administration", "Concurrency", "Database", "Doctor", "HTTP",
                "InternetMessage", "Mail", "MailAuth",
                "Monitoring", "PasskeyTesting", "postern", "PosternConfiguration", "PosternMetrics",
                "PostfixHarness",
                "PostgresHarness", "Relay", "RelayCore", "Service", "TestSupport", argumentParser,
                logging,
            ],
            exclude: ["Docs/Before", "Docs/machine.sh", "Snapshots", "Tools"], swiftSettings: strict
        ),
        .target(
            name: "PostfixHarness", dependencies: ["Concurrency", "PostfixSetup"],
            path: "Tests/PostfixHarness",
            exclude: ["References"],
            swiftSettings: strict),
        .target(
            name: "RelayHarness", dependencies: ["DNSClient", "DNSTesting", "PostfixHarness"],
            path: "Tests/RelayHarness",
            swiftSettings: strict),
        .target(
            name: "DemoSupport", dependencies: ["InternetMessage", "PostfixHarness"],
            path: "Tests/DemoSupport",
            swiftSettings: strict),
        .executableTarget(
            name: "relay-demo", dependencies: ["DemoSupport", "PostfixHarness", "RelayHarness"],
            path: "Tests/RelayDemo",
            swiftSettings: strict),
        .executableTarget(
            name: "sign-in-demo", dependencies: ["DemoSupport", "PostfixHarness", "RelayHarness"],
            path: "Tests/SignInDemo",
            exclude: ["app.py", "index.html"], swiftSettings: strict),
        .executableTarget(
            name: "postfix-test-filter", dependencies: ["Milter"], path: "Tests/PostfixTestFilter",
            swiftSettings: strict),
        .testTarget(
            name: "PostfixTests",
            dependencies: [
                "Accounts", "Decisions", "DNSTesting", "HostileMail", "InternetMessage", "MailAuth",
                "MailCrypto", "MailTesting",
                "MilterTesting", "postern", "PosternSQLite", "postfix-test-filter",
                "PostfixHarness", "PostfixSetup",
                "PostgresHarness", "RelayHarness", "TestSupport",
            ],
            exclude: ["README.md", "Cases", "IntegrationCases", "Pages", "RelayCases"],
            swiftSettings: strict),
    ] + (Context.environment["POSTERN_BENCH"] == "1" ? benchmarks : []),
    swiftLanguageModes: [.v6]
)

/// POSTERN_CHECK=1: the tests of `make check` alone, and what they need. Each build compiles and
/// links all that is listed here.
if Context.environment["POSTERN_CHECK"] == "1" {
    let tests: Set = [
        "SupportTests", "InternetMessageTests", "MailCryptoTests", "MailAuthTests", "WebAuthnTests",
        "CELTests",
        "RiskPolicyTests", "SharedSignalsTests", "DeclarationTests", "LeakSearchTests",
        "RelayCoreTests", "MilterTests",
        "DNSClientTests",
        "FuzzTests",
        "SignInTests", "DecisionTests", "MailTests", "StoreTests",
    ]
    var (needed, found): (Set<String>, [String]) = (tests, Array(tests))
    while let name = found.popLast() {
        for case .byNameItem(let other, _) in package.targets.first(where: { $0.name == name })?
            .dependencies ?? []
        where needed.insert(other).inserted { found.append(other) }
    }
    needed.formUnion(["EmbedText", "embed-text"])
    package.targets.removeAll { !needed.contains($0.name) }
    package.products = []
}
