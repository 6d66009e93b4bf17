// Each fuzz target with its first inputs, which Fuzzing/seed.py makes from the vectors and the
// public test data.

import Foundation
import TestSupport
import Testing

/// Records an issue, with the input, if a property does not hold.
func require(_ condition: Bool, _ property: String) {
    if !condition { Issue.record("does not hold: \(property) (input \(FuzzSeedTests.input))") }
}

@Suite(.blocking) struct FuzzSeedTests {
    @TaskLocal static var input = ""

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../..")
        .standardizedFileURL

    /// A folder with a subfolder for each target, made once.
    private static let seeds: Result<URL, any Error> = Result {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-seeds-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let environment = ProcessInfo.processInfo.environment
        let conformance =
            environment["POSTERN_CONFORMANCE"]
            ?? root.appendingPathComponent("../shared/conformance").path
        try ProgramRun.succeed([
            "python3", root.appendingPathComponent("Fuzzing/seed.py").path, folder.path, root.path,
            conformance,
        ])
        return folder
    }

    @Test(arguments: fuzzTargets.keys.sorted()) func fuzzTarget_firstInputs_propertiesHold(
        _ name: String
    ) throws {
        let target = try #require(fuzzTargets[name])
        let folder = try Self.seeds.get().appendingPathComponent(name)
        let files =
            (try? FileManager.default.contentsOfDirectory(
                at: folder, includingPropertiesForKeys: nil)) ?? []
        if files.isEmpty {
            // Some targets have seeds only in the public test data.
            try #require(["aggregate", "webauthn"].contains(name), "\(name) has no first input")
            print(
                "skipped: the first inputs of \(name) are in the public test data, which is not here"
            )
        }
        for file in files {
            let octets = Array(try Data(contentsOf: file))
            Self.$input.withValue("\(name)/\(file.lastPathComponent)") { target(octets) }
        }
        // No input, and an input that is longer than any seed.
        Self.$input.withValue("\(name): empty") { target([]) }
        Self.$input.withValue("\(name): zeros") { target(Array(repeating: 0, count: 16_384)) }
    }
}
