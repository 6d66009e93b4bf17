// postern apply: applies the teams, apps, sources, lists and policies that files declare.

import Accounts
import Administration
import ArgumentParser
import CEL
import Database
import Decisions
import Declaration
import Foundation
import PosternConfiguration
import RiskPolicy

struct ApplyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply",
        abstract: "Apply the teams, apps, sources, lists and policies that files declare.",
        discussion: """
            The files are YAML; a folder means all of its *.yaml and *.yml files. What the files do not mention stays \
            unchanged: a team without sources: keeps its sources, and nothing is removed without --prune. All changes are \
            one transaction, and are together in the audit. A second run changes nothing.

              teams:
                juice:
                  name: The Juice Company
                  sources: [juice.example]
                  apps:
                    com.example.juice:
                      redirect_uris: [https://juice.example/signed-in]
                      endpoint: https://juice.example/events

            postern export writes such files from the current state. The files do not contain secrets, keys, users or \
            entries of lists.
            """)

    @Argument(
        help: ArgumentHelp(
            "A file, or a folder with files; - reads standard input.", valueName: "file-or-folder"),
        completion: .file(), transform: filePath)
    var path: String?

    @Flag(help: "Show what would change, and change nothing.")
    var dryRun = false

    @Flag(help: "Also remove items that are not in the files, in the sections that the files have.")
    var prune = false

    @Flag(
        help:
            "With --prune: remove teams with their accounts, apps with the consent of their users, and lists with their entries."
    )
    var yes = false

    @Flag(help: "Print a JSON Schema of the files, for editors.")
    var schema = false

    @OptionGroup var output: OutputOptions
    @OptionGroup var installation: InstallationOptions

    func validate() throws {
        if schema {
            if path != nil { throw ValidationError("--schema reads no file.") }
        } else if path == nil {
            throw ValidationError("Name a file or a folder.")
        }
    }

    func run() throws {
        guard let path, !schema else { return print(DeclarationSchema.text, terminator: "") }
        var reader = DeclarationReader()
        for (name, text) in try DeclarationFiles.read(path) { reader.read(text, name: name) }
        try held { try reader.finish() }
        try installation.withInstallation { try apply(reader, $0) }
    }

    private func apply(_ reader: DeclarationReader, _ installation: Installation) throws {
        let store = installation.store
        var run = DeclarationRun(prunes: prune, takesDependents: yes || dryRun)
        run.place = reader.place
        var taken: [String] = []
        run.tells = { taken.append($0) }
        try held { try policies(reader, store, &run) }
        let (declaration, faults) = run.normalized(
            reader.declaration, in: store, now: PosternClock.now())
        try hold(faults, reader)
        let plan =
            dryRun
            ? try run.rehearse(declaration, on: store, thisChange())
            : try run.apply(declaration, to: store, thisChange())
        try hold(plan.faults, reader)
        try show(plan, taken)
        guard !dryRun else {
            if !taken.isEmpty, !yes { Failure.remark("this needs --yes") }
            return
        }
        warn(plan, installation)
        try ContextAdvice.warn(store)
        guard plan.count(.remove) > 0 else { return }
        takeAway(from: store)
        while try store.liveLists.step(now: PosternClock.now()) {}
    }

    /// Reads the policies' folders, and checks those that are not in force.
    private func policies(
        _ reader: DeclarationReader, _ store: Store, _ run: inout DeclarationRun
    ) throws {
        let arrangement = try store.policies.arrangement()
        for (name, declared) in (reader.declaration.policies ?? [:]).sorted(by: { $0.key < $1.key })
        {
            let known = arrangement.policies.first { $0.name == name }?.hash
            guard let folder = declared.folder else {
                // A policy in force needs no check: if it does not load, the log says why.
                guard let hash = try? store.policies.resolve(declared.hash), hash != known else {
                    continue
                }
                let loaded: LoadedPolicy
                do { loaded = try LoadedPolicy(store.policies.policy(hash: hash)) } catch let error
                    as PolicyLoadError
                {
                    throw CommandError.data("policy \(name) does not load: \(error)")
                }
                run.listsOfPolicies[name] = loaded.policy.liveLists
                continue
            }
            let base =
                reader.file(of: .policy(name)).map { ($0 as NSString).deletingLastPathComponent }
                ?? ""
            let path =
                folder.hasPrefix("/") ? folder : (base as NSString).appendingPathComponent(folder)
            let files = PolicyFolder(path: path)
            var candidate = try files.load()
            guard candidate.policy.name == name else {
                reader.report(.policy(name), "\(path) holds the policy \(candidate.policy.name)")
                return try reader.finish()
            }
            let hash = StoredPolicy.hash(of: candidate.document.octets)
            var stored = StoredPolicy(
                name: name, version: candidate.policy.version, document: candidate.document.octets)
            if hash != known {
                candidate = try files.load(generatedInputs: PolicyGate.generatedInputs)
                stored = try PolicyGate.stored(candidate, of: files, store.decisions)
            }
            run.policies[name] = stored
            run.listsOfPolicies[name] = candidate.policy.liveLists
        }
    }

    // MARK: What is wrong

    private func hold(_ faults: [PlanFault], _ reader: DeclarationReader) throws {
        for fault in faults { reader.report(fault.item, fault.message) }
        try held { try reader.finish() }
    }

    /// Prints the errors of the files, and ends the command with their status.
    private func held(_ body: () throws -> Void) throws {
        do { try body() } catch let refusal as PolicyRefusal {
            Failure.line("\(refusal)")
            throw CommandError.data("nothing was changed")
        }
    }

    // MARK: Words

    private func show(_ plan: Plan, _ taken: [String]) throws {
        guard output.json else {
            print(plan.text(isApplied: !dryRun))
            for text in taken { print("! " + text) }
            return
        }
        let words: [PlannedChange.Kind: String] = [
            .add: "add", .change: "change", .remove: "remove",
        ]
        try printJSON(
            [
                "applied": !dryRun,
                "changes": plan.changes.map { change -> Members in
                    [
                        "action": words[change.kind], "item": "\(change.item)",
                        "fields": change.fields.map { field -> Members in
                            [
                                "name": field.name.rawValue, "before": field.before,
                                "after": field.after,
                            ]
                        },
                    ]
                },
                "kept": plan.kept.map(\.description), "taken": taken,
            ] as Members)
    }

    private func warn(_ plan: Plan, _ installation: Installation) {
        for change in plan.changes where change.kind == .add {
            guard case .source(let team, let source) = change.item, let domain = source.envelope
            else { continue }
            Failure.warn("anyone who can send through \(domain) can now send as team \(team)")
        }
        let hasEndpoint = plan.changes.contains { change in
            if case .endpoint = change.item { change.kind != .remove } else { false }
        }
        if hasEndpoint, installation.configuration.provider.issuer == nil {
            Failure.warn("no event is sent until http.public_url or provider.issuer is set")
        }
    }
}
