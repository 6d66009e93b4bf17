// The name of a policy in a command: a folder, an active policy, a policy in the program, or the
// beginning of a hash.

import ArgumentParser
import Decisions
import Foundation
import RiskPolicy

/// A policy that an argument names.
struct ReferredPolicy {
    /// The name in messages: `risk-default 2026.5 (4d0c3f2a11aa)`, or with the folder.
    let label: String
    let hash: String
    let candidate: PolicyCandidate
    /// The folder that it was read from; nil for a policy of the store or the program.
    var folder: String?

    var policy: Policy { candidate.policy }

    static let help = ArgumentHelp(
        "A folder, the name of an active policy, default (the one in the program), or the beginning of a hash.",
        valueName: "policy")
    /// The argument for the policy in the program.
    static let builtInName = "default"

    /// Whether the text names a folder with a policy rather than one in the store.
    static func isFolder(_ text: String) -> Bool {
        FileManager.default.fileExists(
            atPath: PolicyFolder(path: text).file(PolicyDocument.policyFile))
    }

    /// Reads the policy that the text names.
    /// - Parameter repository: opened only if the text does not name a folder.
    init(_ text: String, repository: () throws -> PolicyRepository) throws {
        if Self.isFolder(text) {
            let candidate = try PolicyFolder(path: text).candidate()
            self.init(
                label: "\(candidate.policy.name) \(candidate.policy.version) (\(text))",
                hash: StoredPolicy.hash(of: candidate.document.octets), candidate: candidate)
            folder = text
            return
        }
        if Self.isBuiltIn(text) {
            try self.init(.builtIn)
            return
        }
        let repository = try repository()
        // A status policy is always in force: the built-in one, until another one is activated.
        if text == PolicyKind.statusName,
            try !repository.arrangement().policies.contains(where: { $0.name == text })
        {
            try self.init(.builtInStatus)
            return
        }
        try self.init(hash: try repository.resolve(text), in: repository)
    }

    /// Whether the text names a policy of a folder or of the program.
    static func isWithoutStore(_ text: String) -> Bool { isFolder(text) || isBuiltIn(text) }

    private static func isBuiltIn(_ text: String) -> Bool {
        text.utf8.elementsEqual(builtInName.utf8)
    }

    /// Reads the policy that the text names. Opens the store only if that is neither a folder nor a
    /// policy in the program.
    init(_ text: String, in installation: InstallationOptions) throws {
        let isStatus = text.utf8.elementsEqual(PolicyKind.statusName.utf8)
        if Self.isWithoutStore(text) {
            try self.init(text) { throw CommandError.noInput("\(text): no such folder") }
        } else if isStatus, (try? installation.configuration()) == nil {
            // Without an installation only the built-in policy can be in force.
            try self.init(.builtInStatus)
        } else if text.utf8.contains(UInt8(ascii: "/")) || text.utf8.first == UInt8(ascii: ".") {
            throw CommandError.noInput(
                "\(PolicyFolder(path: text).file(PolicyDocument.policyFile)): no such file")
        } else {
            self = try installation.withStore { store in try ReferredPolicy(text) { store.policies }
            }
        }
    }

    /// Its tests; nil if it has none.
    func tests() throws -> PolicyTestSuite? {
        guard let text = candidate.document.files[PolicyDocument.testsFile] else { return nil }
        return try reporting { () throws(PolicyRefusal) in
            try PolicyTestSuite.load(text, file: testsFile, policy: policy)
        }
    }

    /// The name of the file with its tests, in messages.
    var testsFile: String {
        folder.map { PolicyFolder(path: $0).file(PolicyDocument.testsFile) }
            ?? PolicyDocument.testsFile
    }

    /// A policy of the store. It was accepted before, so if this program refuses it, the data is
    /// wrong.
    init(hash: String, in repository: PolicyRepository) throws {
        try self.init(try repository.policy(hash: hash))
    }

    /// The policy as the store would keep it.
    var stored: StoredPolicy {
        StoredPolicy(
            name: policy.name, version: policy.version, document: candidate.document.octets)
    }

    init(_ stored: StoredPolicy) throws {
        let hash = stored.hash
        let loaded: LoadedPolicy
        do {
            loaded = try LoadedPolicy(stored)
        } catch {
            throw CommandError.data(
                "\(stored.name) \(stored.version) (\(StoredPolicy.short(hash))) does not load: \(error)"
            )
        }
        guard let document = PolicyDocument(octets: stored.document) else {
            throw CommandError.data("the document is damaged")
        }
        self.init(
            label: "\(loaded.name) \(loaded.version) (\(StoredPolicy.short(hash)))", hash: hash,
            candidate: PolicyCandidate(policy: loaded.policy, document: document))
    }

    private init(label: String, hash: String, candidate: PolicyCandidate) {
        self.label = label
        self.hash = hash
        self.candidate = candidate
    }
}
