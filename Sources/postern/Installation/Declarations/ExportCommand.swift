// postern export: the current state as files for postern apply.

import Accounts
import Administration
import ArgumentParser
import Database
import Decisions
import Declaration
import Foundation
import RiskPolicy
import Support

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write teams, apps, sources, lists and policies as files for postern apply.",
        discussion: """
            Without a folder, writes one file to standard output, which names policies by their hash in this store; --json writes \
            it as JSON, which postern apply reads as well. With a \
            folder, writes a file for each team, one for lists and policies, and the policies' own files; another \
            installation can be created from these.

            The files do not contain secrets, keys, users or entries of lists. postern apply of an export changes nothing.
            """)

    @Argument(
        help: "A folder to write into, which must not exist.", completion: .directory,
        transform: filePath)
    var folder: String?

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard folder == nil || !output.json else {
            throw ValidationError("--json is for the one file on standard output.")
        }
    }

    private static let head = "# Written by postern export. postern apply puts it in force.\n"

    func run() throws {
        try installation.withStore { store in
            // A snapshot, so that concurrent changes do not mix.
            let (present, policies) = try store.readAsOne { store throws(StoreFailure) in
                let present = try store.presentState()
                var policies: [StoredPolicy] = []
                if folder != nil {
                    for policy in (present.policies ?? [:]).values.sorted(by: { $0.hash < $1.hash })
                    {
                        policies.append(try store.policies.policy(hash: policy.hash))
                    }
                }
                return (present, policies)
            }
            guard let folder else {
                let text = Self.head + DeclarationWriter.text(present.withoutEmptySections)
                guard text.utf8.count <= BoundedYAML.maximumOctets else {
                    throw CommandError.usage("this is more than one file may hold: name a folder")
                }
                if output.json {
                    return print(try DeclarationWriter.json(present.withoutEmptySections))
                }
                return print(text, terminator: "")
            }
            try write(present, policies, to: folder)
        }
    }

    private func write(_ present: Declaration, _ policies: [StoredPolicy], to folder: String) throws
    {
        guard !FileManager.default.fileExists(atPath: folder) else {
            throw CommandError(
                status: EX_CANTCREAT,
                message: "\(folder) exists already: choose another folder; nothing was written")
        }
        func path(_ name: String) -> String { (folder as NSString).appendingPathComponent(name) }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try OwnedFile.adopt(folder: folder)
        var shared = Declaration(lists: present.lists, policies: present.policies)
        for policy in policies {
            guard policy.isIntact, let document = PolicyDocument(octets: policy.document) else {
                throw CommandError.data(
                    "policy \(policy.name): the document in the store is damaged")
            }
            shared.policies?[policy.name]?.folder = "policies/\(policy.name)"
            try PolicyFolder(path: path("policies/\(policy.name)")).write(document)
        }
        var written = 0
        func file(_ name: String, _ declaration: Declaration) throws {
            try OwnedFile.write(
                (Self.head + DeclarationWriter.text(declaration)).utf8, to: path(name))
            written += 1
        }
        try file("installation.yaml", shared)
        for (id, team) in (present.teams ?? [:]).sorted(by: { $0.key < $1.key }) {
            try file("team-\(id).yaml", Declaration(teams: [id: team]).withoutEmptySections)
        }
        print(
            "Wrote \(Count.text(written, "file")) and \(Count.text(policies.count, "policy", "policies")) into \(folder)"
        )
    }
}
