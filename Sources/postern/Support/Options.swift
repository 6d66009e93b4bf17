// The options that commands share: which installation to use, and how to print.

import Database
import Accounts
import ArgumentParser
import Foundation
import InternetMessage
import PosternConfiguration
import Support
import Synchronization

/// Names the installation.
struct InstallationOptions: ParsableArguments {
    /// As given with --config.
    @Option(help: ArgumentHelp("The configuration file, or the folder that holds it.", valueName: "file"), transform: filePath)
    var config: String?

    /// As given with --set.
    @Option(
        help: ArgumentHelp(
            "Set a configuration key for this command, overriding file and environment; may be repeated.", valueName: "key=value")
    )
    var set: [String] = []

    /// As given with --quiet.
    @Flag(help: "Print no warnings, notes and progress on standard error, only errors.")
    var quiet = false

    init() {}

    func validate() { Failure.isQuiet = quiet }

    /// What a proposed command needs to be about this installation: the same --config.
    var forProposals: [String] { config.map { ["--config", $0] } ?? [] }

    /// Opens configuration, keys and store. The caller closes them.
    func open() throws -> Installation {
        try Installation.open(
            flag: config, environment: ProcessInfo.processInfo.environment, set: set, now: PosternClock.now())
    }

    /// The installation that --config names; otherwise the one at the usual places, if it exists and can be opened.
    func installationIfAny() throws -> Installation? {
        let environment = ProcessInfo.processInfo.environment
        let path = ResolvedConfiguration.locate(flag: config, environment: environment)
        guard config != nil || FileManager.default.fileExists(atPath: path) else { return nil }
        do {
            return try open()
        } catch {
            guard config == nil else { throw error }
            Failure.warn("continuing without the installation: \(error)")
            return nil
        }
    }

    /// Opens configuration, keys and store, and passes them to `body`.
    func withInstallation<T>(_ body: (Installation) throws -> T) throws -> T {
        let installation = try open()
        defer { try? installation.close() }
        return try body(installation)
    }

    /// The same for commands that need only the store.
    func withStore<T>(_ body: (Store) throws -> T) throws -> T { try withInstallation { try body($0.store) } }

    /// Only the configuration, without keys and store.
    func configuration() throws -> (Configuration, ResolvedConfiguration) {
        try Installation.configuration(flag: config, environment: ProcessInfo.processInfo.environment, set: set)
    }
}

extension InstallationOptions {
    /// Refuses to write a report over a folder or a file of the installation: without its keys no inbox can be read again.
    func refuse(output path: String?) throws {
        guard let path else { return }
        var target = stat()
        let exists = stat(path, &target) == 0
        guard !exists || target.st_mode & S_IFMT != S_IFDIR else {
            throw CommandError(status: EX_CANTCREAT, message: "\(path): is a folder: name a file; nothing was written")
        }
        guard let (configuration, resolved) = try? configuration() else { return }
        let database = configuration.database.path.map { path in ["", "-wal", "-shm", "-journal"].map { path + $0 } } ?? []
        for own in [resolved.path, configuration.keyFilePath] + database {
            var status = stat()
            let isSame =
                exists && stat(own, &status) == 0
                ? status.st_dev == target.st_dev && status.st_ino == target.st_ino : Self.isSamePlace(path, own)
            guard isSame else { continue }
            throw CommandError.usage("\(path) is a file of the installation: name another; nothing was written")
        }
    }
}

extension InstallationOptions {
    /// Whether two paths name one place in one folder: SQLite takes for its own what is beside a database under certain names.
    private static func isSamePlace(_ one: String, _ other: String) -> Bool {
        let (one, other) = (URL(fileURLWithPath: one), URL(fileURLWithPath: other))
        var (first, second) = (stat(), stat())
        return one.lastPathComponent.hasSameOctets(as: other.lastPathComponent)
            && stat(one.deletingLastPathComponent().path, &first) == 0
            && stat(other.deletingLastPathComponent().path, &second) == 0
            && first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }
}

/// How a reading command prints.
struct OutputOptions: ParsableArguments {
    /// Instead of text.
    @Flag(help: "Print JSON.")
    var json = false

    init() {}
}

/// Whether inbox addresses are shown.
struct RevealOptions: ParsableArguments {
    /// As given with --reveal.
    @Flag(help: "Show inbox addresses and names in full instead of their first letter.")
    var reveal = false

    init() {}

    /// What may be shown. With --reveal the audit says so first: what cannot be written there is not shown.
    /// - Parameter subject: whose data, as the audit names it.
    /// - Parameter action: as the audit has it.
    func disclosure(of subject: String, in store: Store, as action: String = "user.reveal") throws(StoreFailure) -> Disclosure {
        if reveal { try store.audit.note(thisChange(), action, subject) }
        return Disclosure(isFull: reveal)
    }
}

/// How addresses of users and their names are shown.
struct Disclosure: Sendable {
    fileprivate let isFull: Bool

    /// The address as it may be shown: `l…@gmail.com`, or in full.
    func shown(_ inbox: InboxAddress) -> String { isFull ? inbox.revealed.wireForm : inbox.hint }

    /// A name as it may be shown: its first letter, or in full.
    func shown(name: String?) -> String? {
        guard let name else { return nil }
        return isFull ? name : String(String.UnicodeScalarView(name.unicodeScalars.prefix(1))) + "…"
    }
}

/// Confirms a command, and that a removal also removes what depends on the object.
struct ConfirmationOptions: ParsableArguments {
    /// As given with --yes.
    @Flag(help: "Confirm. A removal also removes everything that depends on the object.")
    var yes = false

    init() {}

    /// Throws if something depends on the object and --yes was not given. The counts are those of `BoundedCount`.
    /// - Parameter isFinal: whether the object itself cannot be made again as it was, so that --yes is always required.
    func check(_ what: String, takes dependents: [(Int, String)], isFinal: Bool = false) throws {
        let parts = dependents.filter { $0.0 > 0 }.map { count, name in
            "\(BoundedCount.text(count)) \(count == 1 ? name : Self.many(name))"
        }
        guard !yes, isFinal || !parts.isEmpty else { return }
        let loss = parts.isEmpty ? "cannot be undone" : "also removes \(parts.joined(separator: ", "))"
        throw CommandError.usage("removing \(what) \(loss): repeat with --yes to do so; nothing was changed")
    }
}

extension ConfirmationOptions {
    private static func many(_ name: String) -> String {
        if name.hasSuffix("y") { return name.dropLast() + "ies" }
        return name + (name.hasSuffix("s") || name.hasSuffix("x") ? "es" : "s")
    }
}

/// The clock of the command line.
enum PosternClock {
    /// Seconds since 1970.
    @Sendable static func now() -> Int64 { Int64(Date().timeIntervalSince1970) }
}

/// Whether this command changes the store, so that an output which cannot be written does not look like a failure of the change.
enum MadeChange {
    static var isBegun: Bool {
        get { begun.load(ordering: .relaxed) }
        set { begun.store(newValue, ordering: .relaxed) }
    }
    private static let begun = Atomic(false)
}

/// Who makes the change, and when: the user id, and with sudo also the id of its caller.
func thisChange() -> Change {
    MadeChange.isBegun = true
    let caller = ProcessInfo.processInfo.environment["SUDO_UID"].flatMap { Int($0) }.map { " sudo:\($0)" } ?? ""
    return Change(actor: "uid:\(getuid())" + caller, now: PosternClock.now())
}

/// Deletes the remaining rows of removed objects, with pauses for other writers. The removal itself is complete: if this fails,
/// the service continues, and the command has still succeeded. A store that is busy is not reported.
func takeAway(from store: Store) {
    func warn(_ what: String, _ error: StoreFailure) {
        if error.code == .temporary(.busy) { return }
        Failure.warn("not all rows of \(what) are deleted yet, and postern serve deletes the rest: \(error)")
    }
    do {
        for failure in try store.removals.run(now: PosternClock.now(), pause: leaveTurn) {
            warn("\(failure.item)", failure.error)
        }
    } catch { warn("what was removed", error) }
}

/// Pauses for other writers after a step of this duration: SQLite gives the lock to any writer that asks at that moment.
func leaveTurn(after took: Duration) { Thread.sleep(forTimeInterval: (took / 4) / .seconds(1)) }

/// An inbox address from an argument; `-` reads it from standard input, so that it does not show in the list of processes.
func inboxArgument(_ text: String) throws -> InboxAddress {
    guard text == "-" else { return InboxAddress(try AddrSpec.typed(text)) }
    return InboxAddress(try AddrSpec.typed(lineOfInput("give an inbox address on standard input")))
}

/// The first line of standard input. Throws `CommandError` with the words if there is none.
func lineOfInput(_ words: String) throws -> String {
    guard let line = readLine(), !line.isEmpty else { throw CommandError.noInput(words) }
    return line.unicodeScalars.first == "\u{FEFF}" ? String(line.unicodeScalars.dropFirst()) : line
}

/// An inbox of a user by its number or address.
func inboxName(_ text: String) throws -> InboxName {
    if let number = Int64(text) { return .number(number) }
    return .address(try inboxArgument(text))
}
