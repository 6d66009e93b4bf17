// Reads a policy's folder for the commands: the one place of theirs that touches files.

import ArgumentParser
import Foundation
import RiskPolicy

/// A folder with policy.yaml, tests.yaml and the files that `lists:` names.
struct PolicyFolder {
    let path: String

    /// Largest file that is read; the loader's own limits are below it, lists may be longer.
    static let maximumBytes = 16 << 20

    func file(_ name: String) -> String { path.hasSuffix("/") ? path + name : path + "/" + name }

    /// The policy, or the command ends with what is wrong.
    func policy() throws -> Policy {
        let name = file("policy.yaml")
        guard let text = try Self.read(name) else { throw CommandError.noInput("\(name): no such file") }
        var options = PolicyLoadOptions()
        options.zones = .system
        let folder = self
        options.listFile = { (try? Self.read(folder.file($0))) ?? nil }
        return try reporting { () throws(PolicyRefusal) in try PolicyLoader.load(text, file: name, options: options) }
    }

    /// The tests; nil where the folder has none.
    func tests(_ policy: Policy) throws -> PolicyTestSuite? {
        let name = file("tests.yaml")
        guard let text = try Self.read(name) else { return nil }
        return try reporting { () throws(PolicyRefusal) in try PolicyTestSuite.load(text, file: name, policy: policy) }
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
