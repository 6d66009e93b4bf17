// Reads a policy's folder for the commands: the one place of theirs that touches files.

import ArgumentParser
import Foundation
import RiskDecisions
import RiskPolicy
import Synchronization

/// A policy that was read, with its files as the store would keep them.
struct PolicyCandidate {
    let policy: Policy
    let document: PolicyDocument
}

/// A folder with policy.yaml, tests.yaml and the files that `lists:` names.
struct PolicyFolder {
    let path: String

    /// Largest file that is read; the loader's own limits are below it, lists may be longer.
    static let maximumBytes = 16 << 20

    func file(_ name: String) -> String { prefix + name }

    /// The path with a slash at its end.
    private var prefix: String { path.hasSuffix("/") ? path : path + "/" }

    /// The policy, or the command ends with what is wrong.
    func policy() throws -> Policy { try candidate().policy }

    /// The tests; nil where the folder has none.
    func tests(_ policy: Policy) throws -> PolicyTestSuite? {
        let name = file(PolicyDocument.testsFile)
        guard let text = try Self.read(name) else { return nil }
        return try reporting { () throws(PolicyRefusal) in try PolicyTestSuite.load(text, file: name, policy: policy) }
    }

    /// The policy and its files, or the command ends with what is wrong.
    func candidate() throws -> PolicyCandidate { try reported { try load() } }

    /// The policy and its files. Throws `PolicyRefusal`, or `CommandError` where a file cannot be read.
    /// - Parameter generatedInputs: on how many the guarantees must hold.
    func load(generatedInputs: Int? = nil) throws -> PolicyCandidate {
        let name = file(PolicyDocument.policyFile)
        guard let text = try Self.read(name) else { throw CommandError.noInput("\(name): no such file") }
        let files = Mutex([PolicyDocument.policyFile: text])
        var options = PolicyLoadOptions.onThisMachine
        if let generatedInputs { options.generatedInputs = generatedInputs }
        let folder = self
        let lists = ListFiles()
        options.listFile = { path in
            guard PolicyDocument.isPath(path), let text = (try? Self.read(folder.file(path))) ?? nil else { return nil }
            lists.texts.withLock { $0[path] = text }
            return text
        }
        let policy = try PolicyLoader.load(text, file: name, options: options)
        let tests = try Self.read(file(PolicyDocument.testsFile))
        let document = files.withLock { files in
            files.merge(lists.texts.withLock { $0 }) { $1 }
            if let tests { files[PolicyDocument.testsFile] = tests }
            return PolicyDocument(files: files)
        }
        guard document.octets.count <= PolicyDocument.maximumOctets else {
            throw CommandError.data("\(path): the files are larger than \(PolicyDocument.maximumOctets) bytes together")
        }
        return PolicyCandidate(policy: policy, document: document)
    }

    private final class ListFiles: Sendable {
        let texts = Mutex<[String: String]>([:])
    }

    /// A file's text, `-` for standard input; nil where there is no such file.
    static func read(_ path: String) throws -> String? {
        let data: Data
        if path == "-" {
            data = FileHandle.standardInput.readDataToEndOfFile()
        } else {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue else { return nil }
            data = try Data(contentsOf: URL(filePath: path))
        }
        guard data.count <= maximumBytes else { throw CommandError.data("\(path): larger than \(maximumBytes) bytes") }
        guard let text = String(validating: data, as: UTF8.self) else { throw CommandError.data("\(path): not UTF-8") }
        return text
    }
}

/// Prints a refusal to standard error and ends the command with status 1.
func reporting<Value>(_ body: () throws(PolicyRefusal) -> Value) throws -> Value {
    do throws(PolicyRefusal) {
        return try body()
    } catch {
        FileHandle.standardError.write(Data("\(error)\n".utf8))
        throw ExitCode.failure
    }
}

/// The same for what may fail otherwise too: other errors pass.
func reported<Value>(_ body: () throws -> Value) throws -> Value {
    do {
        return try body()
    } catch let refusal as PolicyRefusal {
        FileHandle.standardError.write(Data("\(refusal)\n".utf8))
        throw ExitCode.failure
    }
}
