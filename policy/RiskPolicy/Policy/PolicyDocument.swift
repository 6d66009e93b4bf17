// A policy's files as one document in canonical form. The store keeps the document, and the
// policy's hash is computed from it.
//
//   postern-policy-1
//   9120 policy.yaml
//   <9120 octets>
//   15300 tests.yaml
//   <15300 octets>
//
// Files are ordered by the octets of their paths; each is followed by a line
// feed that is not counted.

/// The files of one policy.
package struct PolicyDocument: Sendable, Equatable {
    /// Text by path relative to the policy's folder: `policy.yaml`, `tests.yaml`
    /// and the files in `lists:`.
    package let files: [String: String]

    /// Names of the two files with their own meaning.
    package static let policyFile = "policy.yaml"
    package static let testsFile = "tests.yaml"
    /// Octets of all files together.
    package static let maximumOctets = 32 << 20

    private static let head = "postern-policy-1\n"

    package init(files: [String: String]) {
        self.files = files
    }

    /// The document, in the form that is stored and hashed.
    package var octets: [UInt8] {
        var octets = Array(Self.head.utf8)
        for (path, text) in files.sorted(by: {
            Array($0.key.utf8).lexicographicallyPrecedes(Array($1.key.utf8))
        }) {
            octets += "\(text.utf8.count) \(path)\n".utf8
            octets += text.utf8
            octets.append(0x0A)
        }
        return octets
    }

    /// Parses a document; nil if it is not valid, for example damaged.
    package init?(octets: [UInt8]) {
        var rest = octets[...]
        guard rest.starts(with: Self.head.utf8) else { return nil }
        rest = rest.dropFirst(Self.head.utf8.count)
        var files: [String: String] = [:]
        while !rest.isEmpty {
            guard let end = rest.firstIndex(of: 0x0A),
                let line = String(validating: rest[..<end], as: UTF8.self)
            else {
                return nil
            }
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let count = Int(parts[0]), count >= 0,
                count < rest.endIndex - end - 1
            else { return nil }
            let start = end + 1
            guard rest[start + count] == 0x0A,
                let text = String(validating: rest[start..<start + count], as: UTF8.self),
                files.updateValue(text, forKey: String(parts[1])) == nil
            else { return nil }
            rest = rest[(start + count + 1)...]
        }
        self.files = files
    }

    /// Compiles the policy and checks its guarantees on generated inputs (`PolicyLoader.load`).
    /// - Parameter folder: the prefix of file names in messages, for example `rules/juice/`.
    package func policy(
        folder: String = "", options: PolicyLoadOptions = PolicyLoadOptions()
    ) throws(PolicyRefusal) -> Policy {
        let files = files
        var options = options
        options.listFile = { files[$0].map(ListFileText.text) ?? .absent }
        let name = folder + Self.policyFile
        guard let text = files[Self.policyFile] else {
            let start = SourcePosition(line: 1, column: 1)
            throw PolicyRefusal(diagnostics: [
                PolicyDiagnostic(
                    file: name, position: start, message: "the file does not exist", excerpt: "")
            ])
        }
        return try PolicyLoader.load(text, file: name, options: options)
    }

    /// The tests; nil if the policy has none.
    package func tests(
        _ policy: Policy, folder: String = ""
    ) throws(PolicyRefusal) -> PolicyTestSuite? {
        guard let text = files[Self.testsFile] else { return nil }
        return try PolicyTestSuite.load(text, file: folder + Self.testsFile, policy: policy)
    }

    /// Whether a path is allowed in a document: relative, inside the folder, on one line.
    package static func isPath(_ path: String) -> Bool {
        !path.isEmpty && !path.hasPrefix("/") && !path.split(separator: "/").contains("..")
            && !path.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }
    }
}
