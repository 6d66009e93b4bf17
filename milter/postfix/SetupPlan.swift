// The difference between the relay's needs and a Postfix's settings: a value, computed before any
// change.

/// One parameter that changes.
package struct SettingChange: Sendable, Hashable {
    /// `name`, or `service/type/name` for a parameter of master.cf.
    package let name: String
    package let old: String
    package let new: String
    package let reason: String
}

/// The changes of `setup postfix --apply`.
package struct SetupPlan: Sendable, Hashable {
    /// The configuration directory.
    package let directory: String
    /// Parameters of main.cf, in the order of PostfixSettings.
    package internal(set) var mainChanges: [SettingChange] = []
    /// Parameters of services in master.cf.
    package internal(set) var masterChanges: [SettingChange] = []
    /// Services that master.cf lacks, each with its line.
    package internal(set) var newServices: [SettingChange] = []
    /// The header check: its path and its whole content; nil if the file is already correct.
    package internal(set) var headerChecks: (path: String, content: String)? {
        get { headerChecksPath.flatMap { path in headerChecksContent.map { (path, $0) } } }
        set { (headerChecksPath, headerChecksContent) = (newValue?.path, newValue?.content) }
    }
    private var headerChecksPath: String?
    private var headerChecksContent: String?
    /// The operator's values that were kept, and other notes.
    package internal(set) var notes: [String] = []
    /// The operator's settings that let mail bypass our milter.
    package internal(set) var bypasses: [String] = []
    /// Conflicts that only the operator can resolve. Nothing is applied while there is any.
    package internal(set) var conflicts: [String] = []

    init(directory: String) { self.directory = directory }

    /// Whether there is nothing to change.
    package var isEmpty: Bool {
        mainChanges.isEmpty && masterChanges.isEmpty && newServices.isEmpty
            && headerChecksPath == nil
    }

    /// The plan as text for the operator, ending in a line feed.
    package var text: String {
        var lines = [String]()
        if isEmpty && conflicts.isEmpty {
            lines.append("Postfix in \(directory) is set up for Postern: nothing to change.")
        }
        if !mainChanges.isEmpty {
            lines.append("# \(directory)/main.cf")
            for change in mainChanges { lines += Self.lines(change) }
        }
        if !masterChanges.isEmpty || !newServices.isEmpty {
            lines.append("# \(directory)/master.cf")
            for service in newServices { lines += ["  # \(service.reason)", "+ \(service.new)"] }
            for change in masterChanges { lines += Self.lines(change) }
        }
        if let headerChecks {
            lines.append("# \(headerChecks.path)")
            lines += headerChecks.content.split(separator: "\n").map { "+ \($0)" }
        }
        if !notes.isEmpty || !bypasses.isEmpty { lines.append("") }
        lines += (notes + bypasses).map { "note: \($0)" }
        lines += conflicts.map { "conflict: \($0)" }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func lines(_ change: SettingChange) -> [String] {
        [
            "  # \(change.reason)", "- \(change.name) = \(change.old)",
            "+ \(change.name) = \(change.new)",
        ]
    }

    /// Compares a configuration with the needs of the relay. Pure.
    /// - Parameters:
    ///   - headerChecks: the present content of `inputs.headerChecksFile`; nil
    ///     if it does not exist.
    ///   - socketInChroot: whether the socket's path exists below Postfix's queue directory, as
    ///     chrooted services look for it there.
    package static func make(
        _ inputs: PostfixInputs, for configuration: PostfixConfiguration, headerChecks: String?,
        socketInChroot: Bool = false
    ) -> SetupPlan {
        var planner = Planner(inputs: inputs, configuration: configuration)
        planner.domains()
        for setting in PostfixSettings.main(inputs)
        where !Planner.domainSettings.contains(setting.name) {
            planner.setting(setting)
        }
        if inputs.outgoing.isEmpty { planner.withoutOutgoing() }
        planner.master()
        let wanted = PostfixSettings.headerChecks(
            hostName: inputs.hostName, mailName: inputs.mailName)
        if headerChecks != wanted { planner.plan.headerChecks = (inputs.headerChecksFile, wanted) }
        planner.examine()
        if !socketInChroot { planner.examineChroot() }
        return planner.plan
    }
}
