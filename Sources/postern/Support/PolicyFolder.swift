// Reads and writes a policy's folder: the only place where the commands access its files.

import ArgumentParser
import Database
import Decisions
import Foundation
import RiskPolicy
import Synchronization

/// A policy that was read, with its files as the store would keep them.
struct PolicyCandidate {
    let policy: Policy
    let document: PolicyDocument

    init(policy: Policy, document: PolicyDocument) {
        (self.policy, self.document) = (policy, document)
    }
}

/// A folder with policy.yaml, tests.yaml and the files that `lists:` names.
struct PolicyFolder {
    let path: String

    /// - Parameter path: the folder, or its policy.yaml.
    init(path: String) {
        let url = URL(fileURLWithPath: path)
        var isFolder: ObjCBool = false
        let isFile =
            FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
            && !isFolder.boolValue
        let isPolicy = url.lastPathComponent.utf8.elementsEqual(PolicyDocument.policyFile.utf8)
        self.path = isFile && isPolicy ? url.deletingLastPathComponent().path : path
    }

    /// The maximum octets of a file. The loader's own limits are lower, but lists may be longer
    /// than those.
    static let maximumBytes = 16 << 20

    /// The path of a file of the folder.
    func file(_ name: String) -> String { prefix + name }

    /// The path with a slash at its end.
    private var prefix: String { path.hasSuffix("/") ? path : path + "/" }

    /// The policy; if it is not valid, the command ends with the error.
    func policy() throws -> Policy { try candidate().policy }

    /// The tests; nil if the folder has none.
    func tests(_ policy: Policy) throws -> PolicyTestSuite? {
        let name = file(PolicyDocument.testsFile)
        guard let text = try own(PolicyDocument.testsFile) else { return nil }
        return try reporting { () throws(PolicyRefusal) in
            try PolicyTestSuite.load(text, file: name, policy: policy)
        }
    }

    /// The policy and its files; if they are not valid, the command ends with the error.
    func candidate() throws -> PolicyCandidate { try reported { try load() } }

    /// The policy and its files. Throws `PolicyRefusal`, or `CommandError`
    /// if a file cannot be read.
    /// - Parameter generatedInputs: the number of inputs on which the guarantees must hold.
    func load(generatedInputs: Int? = nil) throws -> PolicyCandidate {
        let name = file(PolicyDocument.policyFile)
        guard let text = try own(PolicyDocument.policyFile) else {
            throw CommandError.noInput("\(name): no such file")
        }
        let files = Mutex([PolicyDocument.policyFile: text])
        var options = PolicyLoadOptions.onThisMachine
        if let generatedInputs { options.generatedInputs = generatedInputs }
        let folder = self
        let lists = ListFiles()
        options.listFile = { path in
            guard PolicyDocument.isPath(path) else { return .absent }
            do {
                guard let text = try folder.own(path) else { return .absent }
                lists.texts.withLock { $0[path] = text }
                return .text(text)
            } catch {
                return .unreadable(BatchLine.describe(error))
            }
        }
        let policy = try PolicyLoader.load(text, file: name, options: options)
        let tests = try own(PolicyDocument.testsFile)
        let document = files.withLock { files in
            files.merge(lists.texts.withLock { $0 }) { $1 }
            if let tests { files[PolicyDocument.testsFile] = tests }
            return PolicyDocument(files: files)
        }
        guard document.octets.count <= PolicyDocument.maximumOctets else {
            throw CommandError.data(
                "\(path): the files are larger than \(PolicyDocument.maximumOctets) bytes together")
        }
        return PolicyCandidate(policy: policy, document: document)
    }

    private final class ListFiles: Sendable {
        let texts = Mutex<[String: String]>([:])
    }

    /// The text of a file of the folder; nil if it does not exist. Symbolic links that lead out of
    /// the folder are not followed.
    private func own(_ name: String) throws -> String? {
        let data = try InputFile.octets(
            name, inside: path.isEmpty ? "." : path, maximum: Self.maximumBytes)
        return try data.map { try InputFile.text($0, file(name)) }
    }

    /// The text of a file or pipe, `-` for standard input.
    static func read(_ path: String) throws -> String {
        try InputFile.text(path, maximum: maximumBytes)
    }
}

extension PolicyFolder {
    /// Writes a policy's files into this folder, which must not exist.
    func write(_ document: PolicyDocument) throws {
        guard !FileManager.default.fileExists(atPath: path) else {
            throw CommandError(
                status: EX_CANTCREAT,
                message: "\(path) exists already: choose another folder; nothing was written")
        }
        for (name, text) in document.files.sorted(by: { $0.key < $1.key }) {
            let file = URL(filePath: path, directoryHint: .isDirectory).appending(path: name)
            let parent = file.deletingLastPathComponent()
            if !FileManager.default.fileExists(atPath: parent.path) {
                try FileManager.default.createDirectory(
                    at: parent, withIntermediateDirectories: true)
                try OwnedFile.adopt(folder: parent.path)
            }
            try OwnedFile.write(text.utf8, to: file.path)
        }
    }
}

/// Prints a refusal to standard error and ends the command with status 1.
func reporting<Value>(_ body: () throws(PolicyRefusal) -> Value) throws -> Value {
    do throws(PolicyRefusal) {
        return try body()
    } catch {
        ErrorOutput.write("\(error)\n")
        throw ExitCode.failure
    }
}

/// The same for code that may also throw other errors, which are passed on.
func reported<Value>(_ body: () throws -> Value) throws -> Value {
    do {
        return try body()
    } catch let refusal as PolicyRefusal {
        ErrorOutput.write("\(refusal)\n")
        throw ExitCode.failure
    }
}
