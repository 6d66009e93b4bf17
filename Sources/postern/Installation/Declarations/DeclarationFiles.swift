// The files of a declaration.

import Foundation
import RiskPolicy

enum DeclarationFiles {
    /// The maximum number of files of a folder: far more than one for each team
    /// of a large installation.
    static let maximumFiles = 10_000
    /// The maximum number of octets of all files together.
    static let maximumOctets = 64 << 20

    /// Names and texts of a file, or of the YAML files of a folder in the order of their names.
    /// Subfolders are not read.
    static func read(_ path: String) throws -> [(name: String, text: String)] {
        var isFolder: ObjCBool = false
        guard path != "-", FileManager.default.fileExists(atPath: path, isDirectory: &isFolder),
            isFolder.boolValue
        else {
            return [
                (
                    path,
                    try InputFile.text(
                        InputFile.regularOctets(path, maximum: BoundedYAML.maximumOctets), path)
                )
            ]
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: path).filter {
            ($0.hasSuffix(".yaml") || $0.hasSuffix(".yml")) && !$0.hasPrefix(".")
        }.sorted()
        guard !names.isEmpty else {
            throw CommandError.noInput("\(path): no *.yaml and no *.yml file is in it")
        }
        guard names.count <= maximumFiles else {
            throw CommandError.data(
                "\(path): more than \(maximumFiles) files, which is the maximum")
        }
        var octets = 0
        return try names.map { name in
            let file = (path as NSString).appendingPathComponent(name)
            guard
                let data = try InputFile.octets(
                    name, inside: path, maximum: BoundedYAML.maximumOctets)
            else {
                throw CommandError.data("\(file): not a regular file")
            }
            octets += data.count
            guard octets <= maximumOctets else {
                throw CommandError.data(
                    "\(path): the files are larger than \(maximumOctets) bytes together")
            }
            return (file, try InputFile.text(data, file))
        }
    }
}
