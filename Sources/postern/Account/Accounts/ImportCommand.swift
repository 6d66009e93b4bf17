// postern import: users, inboxes and accounts from a file.

import Accounts
import Administration
import ArgumentParser
import Database
import Foundation
import PosternConfiguration
import Support

struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Import users, inboxes and accounts from CSV or JSON lines.",
        discussion: """
            The first line of a CSV file names its columns; each JSON line is an object with the columns as keys. One row is \
            a user, and optionally an inbox of that user and an account with a team:

              user             the user's identifier; the only column that every row needs
              name             the user's name
              inbox            the user's real address; a new user needs one
              verified         the inbox is known to be the user's; needs --trust-verified
              default          mail goes to this inbox
              reply_only       the user writes from it, and nothing is forwarded to it
              team             the team that the user has an account with
              app              the client_id of the app; otherwise the team's oldest app
              sub              the subject that the team knows; otherwise a new one
              address          the relay address that the team knows; otherwise a new one
              forwarding       on or off
              shares_name      the team gets the user's name
              real_user_status 0, 1 or 2, as the first identity token had it
              since            first consent, as in 2026-11-21, 2026-11-21T06:49:30Z or 1795243770
              last_seen        when the user was last there; otherwise now: who comes back after months away may be asked

            A user with several inboxes or accounts has a row for each. A row is imported as a whole or not at all. Existing \
            data is left unchanged, so that the same file can be imported again: after an interruption, or after its bad \
            rows were fixed. The relay may keep running.
            """)

    @Argument(help: "The file; - reads standard input.", transform: filePath)
    var file: String
    @Flag(help: "Check every row on a copy of the store, and change nothing.")
    var dryRun = false
    @Flag(
        help:
            "Trust the column verified: the author of the file knows that these inboxes belong to their users."
    )
    var trustVerified = false
    @Option(
        help: ArgumentHelp(
            "Write line and reason of each row that was not imported to this file, as CSV.",
            valueName: "file"),
        transform: filePath)
    var errors: String?
    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    /// The number of reasons that are shown without --errors.
    private static let shownReasons = 20
    private static let pieceLength = 1 << 18

    func run() throws {
        let input = try open()
        defer { if file != "-" { try? input.close() } }
        try installation.refuse(output: errors)
        let reasons = try ReasonsFile(errors, input: file)
        defer { reasons?.abandon() }
        let bar = ProgressBar(total: file == "-" ? nil : size(input))
        let report = try installation.withInstallation { installation in
            guard dryRun else {
                return try run(input, installation, installation.store, reasons, bar)
            }
            let leftovers = installation.configuration.database.path.map {
                Leftovers.rehearsals(of: $0)
            }
            leftovers?.removeAbandoned()
            let watch = leftovers?.removingIfInterrupted()
            defer { watch?.end() }
            return try installation.rehearse { try run(input, installation, $0, reasons, bar) }
        }
        bar.clear()
        try reasons?.close()
        try show(report)
        if report.refused > 0 {
            throw CommandError.data(
                "\(Count.text(report.refused, "row")) of \(report.rows) \(dryRun ? "would not be" : "not") imported"
                    + (errors.map { ": see \($0)" } ?? ""))
        }
    }

    private func run(
        _ input: FileHandle, _ installation: Installation, _ store: Store, _ reasons: ReasonsFile?,
        _ bar: ProgressBar
    ) throws -> ImportReport {
        var reader = ImportReader()
        var shown = 0
        let change = thisChange()
        var importer = Importer(
            imports: store.imports,
            reading: ImportReading(
                trustsVerified: trustVerified,
                relayDomains: installation.configuration.relayDomains,
                localRecipients: installation.configuration.localRecipients.keys, now: change.now),
            change: change, pauses: !dryRun
        ) { line, reason in
            if let reasons { return try reasons.write(line: line, reason: reason) }
            shown += 1
            guard shown <= Self.shownReasons + 1 else { return }
            bar.clear()
            Failure.line(
                shown <= Self.shownReasons
                    ? "postern: line \(line): \(reason)"
                    : "postern: more rows were not imported: list them all with --errors FILE")
        }
        var read = 0
        do {
            while let piece = try input.read(upToCount: Self.pieceLength), !piece.isEmpty {
                read += piece.count
                try reader.push(Array(piece)) { record in
                    try importer.take(record)
                    bar.update(done: read, count: importer.report.rows, of: "rows")
                }
            }
            try reader.finish { try importer.take($0) }
        } catch let error as ImportFileError {
            throw CommandError.data("\(file == "-" ? "standard input" : file): \(error)")
        }
        try importer.finish()
        return importer.report
    }

    // MARK: Files

    private func open() throws -> FileHandle {
        if file == "-" { return FileHandle.standardInput }
        var isFolder: ObjCBool = false
        let exists = FileManager.default.fileExists(atPath: file, isDirectory: &isFolder)
        guard !isFolder.boolValue else { throw CommandError.noInput("\(file): a folder") }
        guard exists, let handle = FileHandle(forReadingAtPath: file)
        else { throw CommandError.noInput("\(file): the file does not exist or cannot be read") }
        return handle
    }

    private func size(_ input: FileHandle) -> Int? {
        var status = stat()
        guard fstat(input.fileDescriptor, &status) == 0, status.st_size > 0 else { return nil }
        return Int(status.st_size)
    }

    // MARK: The report

    private func show(_ report: ImportReport) throws {
        let counts = report.counts
        if output.json {
            try printJSON(
                [
                    "rows": report.rows, "unchanged": report.unchanged, "refused": report.refused,
                    "users": counts.users,
                    "names": counts.names, "inboxes": counts.inboxes, "confirmed": counts.confirmed,
                    "accounts": counts.accounts,
                    "grants": counts.grants, "addresses": counts.addresses,
                    "verified_passed_over": report.passedOverVerified,
                    "names_cleaned": report.cleanedNames,
                    "dry_run": dryRun,
                ] as Members)
        } else {
            let parts = [
                Count.text(counts.users, "user"), Count.text(counts.inboxes, "inbox", "inboxes"),
                Count.text(counts.accounts, "account"),
                Count.text(counts.addresses, "relay address", "relay addresses"),
            ]
            var text =
                "\(Count.text(report.rows, "row")): \(dryRun ? "would add" : "added") \(parts.joined(separator: ", "))"
            if counts.confirmed > 0 {
                text +=
                    "; \(dryRun ? "would verify" : "verified") \(Count.text(counts.confirmed, "inbox", "inboxes"))"
            }
            if report.unchanged > 0 {
                text += "; \(Count.text(report.unchanged, "row")) there already"
            }
            print(text + ".")
        }
        if report.cleanedNames > 0 {
            Failure.warn(
                "\(Count.text(report.cleanedNames, "name")) had invisible characters, or characters that change the direction of text: "
                    + "they were left out")
        }
        if report.passedOverVerified > 0 {
            Failure.warn(
                "\(Count.text(report.passedOverVerified, "row")) said verified: without --trust-verified such inboxes must be "
                    + "confirmed before mail is forwarded to them")
        }
    }
}

/// Lines and reasons as CSV: `line,reason`.
private final class ReasonsFile {
    private let handle: FileHandle
    private let path: String
    private var waiting = Data("line,reason\n".utf8)
    /// Whether the file was made for this.
    private let isNew: Bool
    /// Whether something was written. Until then an earlier file stays unchanged, because the whole
    /// import may be refused.
    private var isBegun = false

    /// Nil if no file was named. Refuses the file that is being imported.
    init?(_ path: String?, input: String) throws {
        guard let path else { return nil }
        self.path = path
        var (own, other) = (stat(), stat())
        isNew = stat(path, &own) != 0
        if !isNew, stat(input, &other) == 0, own.st_dev == other.st_dev, own.st_ino == other.st_ino
        {
            throw CommandError.usage("--errors must not name the imported file")
        }
        do {
            handle = FileHandle(
                fileDescriptor: try OwnedFile.open(path, O_WRONLY | O_CREAT, mode: 0o666),
                closeOnDealloc: true)
        } catch {
            throw CommandError(
                status: EX_CANTCREAT, message: "the file of --errors cannot be written: \(error)")
        }
    }

    func write(line: Int, reason: String) throws {
        waiting += Data("\(line),\"\(reason.replacingOccurrences(of: "\"", with: "\"\""))\"\n".utf8)
        if waiting.count > 1 << 16 { try flush() }
    }

    func close() throws {
        try flush()
        try handle.close()
    }

    /// Deletes the new file if nothing was written to it.
    func abandon() { if isNew, !isBegun { unlink(path) } }

    private func flush() throws {
        if !isBegun {
            isBegun = true
            // Only regular files, not devices or pipes.
            _ = ftruncate(handle.fileDescriptor, 0)
        }
        do { try handle.write(contentsOf: waiting) } catch {
            throw CommandError(
                status: EX_IOERR,
                message:
                    "\(path): not everything could be written: the import has ended; free space, and run it again"
            )
        }
        waiting.removeAll()
    }
}
