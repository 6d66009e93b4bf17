// The options that commands share: which installation to use, and how to print.

import Accounts
import ArgumentParser
import Database
import Foundation
import InternetMessage
import PosternConfiguration
import Support
import Synchronization

/// Names the installation.
struct InstallationOptions: ParsableArguments {
    /// The value of --config.
    @Option(
        help: ArgumentHelp(
            "The configuration file, or the folder that holds it.", valueName: "file"),
        transform: filePath)
    var config: String?

    /// The values of --set.
    @Option(
        help: ArgumentHelp(
            "Set a configuration key for this command, overriding file and environment; may be repeated.",
            valueName: "key=value")
    )
    var set: [String] = []

    /// The flag --quiet.
    @Flag(help: "Print no warnings, notes and progress on standard error, only errors.")
    var quiet = false

    init() {}

    func validate() { Failure.isQuiet = quiet }

    /// The options that a proposed command needs to use this installation: the same --config.
    var forProposals: [String] { config.map { ["--config", $0] } ?? [] }

    /// Opens configuration, keys and store. The caller must close them.
    func open() throws -> Installation {
        try Installation.open(
            flag: config, environment: ProcessInfo.processInfo.environment, set: set,
            now: PosternClock.now())
    }

    /// The installation that --config names. Without --config, the one at the usual places, if it
    /// exists and can be opened.
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

    /// As `withInstallation`, for commands that need only the store.
    func withStore<T>(_ body: (Store) throws -> T) throws -> T {
        try withInstallation { try body($0.store) }
    }

    /// As `withStore`, for commands that only list or report: at a standby, if there is one.
    func withListings<T>(_ body: (ListingStore) throws -> T) throws -> T {
        try withInstallation { try body($0.listings) }
    }

    /// Only the configuration, without keys and store.
    func configuration() throws -> (Configuration, ResolvedConfiguration) {
        try Installation.configuration(
            flag: config, environment: ProcessInfo.processInfo.environment, set: set)
    }
}

extension InstallationOptions {
    /// Refuses to write a report over a folder or a file of the installation: without its keys no
    /// inbox can be read.
    func refuse(output path: String?) throws {
        guard let path else { return }
        var target = stat()
        let exists = stat(path, &target) == 0
        guard !exists || target.st_mode & S_IFMT != S_IFDIR else {
            throw CommandError(
                status: EX_CANTCREAT,
                message: "\(path): is a folder: name a file; nothing was written")
        }
        guard let (configuration, resolved) = try? configuration() else { return }
        let database =
            configuration.database.path.map { path in
                ["", "-wal", "-shm", "-journal"].map { path + $0 }
            } ?? []
        for own in [resolved.path, configuration.keyFilePath] + database {
            var status = stat()
            let isSame =
                exists && stat(own, &status) == 0
                ? status.st_dev == target.st_dev && status.st_ino == target.st_ino
                : Self.isSamePlace(path, own)
            guard isSame else { continue }
            throw CommandError.usage(
                "\(path) is a file of the installation: name another; nothing was written")
        }
    }
}

extension InstallationOptions {
    /// Whether two paths are the same name in the same folder. The files need not exist: SQLite
    /// uses files with certain names beside a database as its own.
    private static func isSamePlace(_ one: String, _ other: String) -> Bool {
        let (one, other) = (URL(fileURLWithPath: one), URL(fileURLWithPath: other))
        var (first, second) = (stat(), stat())
        return one.lastPathComponent.hasSameOctets(as: other.lastPathComponent)
            && stat(one.deletingLastPathComponent().path, &first) == 0
            && stat(other.deletingLastPathComponent().path, &second) == 0
            && first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }
}

/// The output format of a reading command.
struct OutputOptions: ParsableArguments {
    /// JSON instead of text.
    @Flag(help: "Print JSON.")
    var json = false

    init() {}
}

/// Why personal data is shown.
struct RevealReason: ParsableArguments {
    /// The value of --reason.
    @Option(
        help: ArgumentHelp(
            "Why you look, for the audit and postern audit report: one line without an email address.",
            valueName: "text"))
    var reason: String?

    init() {}

    func validate() throws {
        guard reason.map(AuditReason.isAllowed) ?? true else {
            throw ValidationError("--reason: \(AuditReason.rule)")
        }
    }
}

/// Whether inbox addresses are shown.
struct RevealOptions: ParsableArguments {
    /// The flag --reveal.
    @Flag(help: "Show inbox addresses and names in full instead of their first letter.")
    var reveal = false
    @OptionGroup var reason: RevealReason

    init() {}

    func validate() throws {
        if !reveal, reason.reason != nil { throw ValidationError("--reason is for --reveal") }
    }

    /// What the command may show. With --reveal it first writes to the audit: if that fails,
    /// nothing is shown.
    /// - Parameter subject: the owner of the data, as the audit names it.
    /// - Parameter action: the action's name in the audit.
    func disclosure(
        of subject: String, in store: Store, as action: RevealAction = .user
    ) throws(StoreFailure) -> Disclosure {
        if reveal { try store.audit.note(thisChange(), action, subject, reason: reason.reason) }
        return Disclosure(isFull: reveal)
    }
}

/// The form in which users' addresses and names are shown.
struct Disclosure: Sendable {
    fileprivate let isFull: Bool

    /// The address in the allowed form: `l…@gmail.com`, or in full.
    func shown(_ inbox: InboxAddress) -> String { isFull ? inbox.revealed.wireForm : inbox.hint }

    /// A name in the allowed form: its first letter, or in full.
    func shown(name: String?) -> String? {
        guard let name else { return nil }
        return isFull ? name : String(String.UnicodeScalarView(name.unicodeScalars.prefix(1))) + "…"
    }
}

/// Confirms a command. For a removal it also confirms that dependent objects are removed.
struct ConfirmationOptions: ParsableArguments {
    /// The flag --yes.
    @Flag(help: "Confirm. A removal also removes everything that depends on the object.")
    var yes = false

    init() {}

    /// Throws if something depends on the object and --yes was not given. The counts are bounded as
    /// in `BoundedCount`.
    /// - Parameter isFinal: whether the object cannot be created again with the same properties, so
    ///   that --yes is always required.
    func check(_ what: String, takes dependents: [(Int, String)], isFinal: Bool = false) throws {
        let parts = dependents.filter { $0.0 > 0 }.map { count, name in
            "\(BoundedCount.text(count)) \(count == 1 ? name : Self.many(name))"
        }
        guard !yes, isFinal || !parts.isEmpty else { return }
        let loss =
            parts.isEmpty ? "cannot be undone" : "also removes \(parts.joined(separator: ", "))"
        throw CommandError.usage(
            "removing \(what) \(loss): repeat with --yes to do so; nothing was changed")
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

/// Whether this command changes the store. If so, an output that cannot be written must not look
/// like a failure of the change.
enum MadeChange {
    static var isBegun: Bool {
        get { begun.load(ordering: .relaxed) }
        set { begun.store(newValue, ordering: .relaxed) }
    }
    private static let begun = Atomic(false)
}

/// The actor and the time of the change: the user id, and with sudo also the id of its caller.
func thisChange() -> Change {
    MadeChange.isBegun = true
    let caller =
        ProcessInfo.processInfo.environment["SUDO_UID"].flatMap { Int($0) }.map { " sudo:\($0)" }
        ?? ""
    return Change(actor: "uid:\(getuid())" + caller, now: PosternClock.now())
}

/// Deletes the remaining rows of removed objects, with pauses for other writers. The removal itself
/// is complete. If this fails, the service continues, and the command has still succeeded. A busy
/// store is not reported.
func takeAway(from store: Store) {
    func warn(_ what: String, _ error: StoreFailure) {
        if error.code == .temporary(.busy) { return }
        Failure.warn(
            "not all rows of \(what) are deleted yet, and postern serve deletes the rest: \(error)")
    }
    do {
        for failure in try store.removals.run(now: PosternClock.now(), pause: leaveTurn) {
            warn("\(failure.item)", failure.error)
        }
    } catch { warn("what was removed", error) }
}

/// Pauses after a step of this duration, because SQLite gives the lock only to a writer that tries
/// during the pause.
func leaveTurn(after took: Duration) { Thread.sleep(forTimeInterval: (took / 4) / .seconds(1)) }

/// An inbox address from an argument. `-` reads it from standard input, so that it is not in the
/// list of processes.
func inboxArgument(_ text: String) throws -> InboxAddress {
    guard text == "-" else { return InboxAddress(try AddrSpec.typed(text)) }
    return InboxAddress(try AddrSpec.typed(lineOfInput("give an inbox address on standard input")))
}

/// The first line of standard input. Throws `CommandError` with this message if there is none.
func lineOfInput(_ words: String) throws -> String {
    guard let line = readLine(), !line.isEmpty else { throw CommandError.noInput(words) }
    return line.unicodeScalars.first == "\u{FEFF}" ? String(line.unicodeScalars.dropFirst()) : line
}

/// An inbox of a user by its number or address.
func inboxName(_ text: String) throws -> InboxName {
    if let number = Int64(text) { return .number(number) }
    return .address(try inboxArgument(text))
}
