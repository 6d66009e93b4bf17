// The implementation of `postern setup postfix`: fragments, the plan for a running
// Postfix, and its application.

import Foundation

/// Connects Postern to a Postfix.
package enum PostfixSetup {
    /// main.cf as required, each setting after its reason.
    package static func mainFragment(_ inputs: PostfixInputs) -> String {
        let settings = PostfixSettings.main(inputs).map {
            "# \($0.reason)\n\($0.name) = \($0.value)".trimmingCharacters(in: .whitespaces)
        }
        return "# What Postern needs in main.cf. `postern setup postfix --apply` sets it.\n\n"
            + settings.joined(separator: "\n\n") + "\n"
    }

    /// master.cf as required: services with the settings they need.
    package static func masterFragment(_ inputs: PostfixInputs) -> String {
        let services = PostfixSettings.services(inputs)
        let lines = Dictionary(
            services.map { ($0.name, $0.line) }, uniquingKeysWith: { first, _ in first }
        )
        .merging([
            "cleanup/unix": "cleanup   unix  n       -       n       -       0       cleanup",
            "smtp/inet": "smtp      inet  n       -       n       -       -       smtpd",
        ]) { first, _ in first }
        let settings = PostfixSettings.master(inputs)
        var names: [String] = []
        for setting in settings where !names.contains(setting.service) {
            names.append(setting.service)
        }
        let parts = names.map { name in
            let own = settings.filter { $0.service == name }
            let head = services.filter { $0.name == name }.map {
                "# \($0.reason)\n#   postconf -M '\(name)=\($0.line)'"
            }
            let reasons = own.flatMap {
                ["# \($0.reason)", "#   postconf -P \($0.service)/\($0.name)=\($0.value)"]
            }
            return
                (head + reasons + [lines[name] ?? ""] + own.map { "  -o \($0.name)=\($0.value)" })
                .joined(separator: "\n")
        }
        return "# What Postern needs in master.cf. `postern setup postfix --apply` sets it.\n\n"
            + parts.joined(separator: "\n\n")
            + "\n"
    }

    /// Everything to install by hand: both fragments and the header check.
    package static func fragments(_ inputs: PostfixInputs) -> String {
        mainFragment(inputs) + "\n" + masterFragment(inputs) + "\n# \(inputs.headerChecksFile)\n"
            + PostfixSettings.headerChecks(hostName: inputs.hostName, mailName: inputs.mailName)
    }

    /// `myhostname` and `mail_name` of the Postfix configured in `directory`, as in
    /// its own Received fields.
    package static func names(directory: String) throws -> (host: String, mail: String) {
        let configuration = try PostfixConfiguration.read(directory: directory)
        return (
            configuration.expanded["myhostname"] ?? "localhost",
            configuration.expanded["mail_name"] ?? "Postfix"
        )
    }

    /// Reads the configuration in `directory` and compares it with the needs of the relay. Host
    /// name and mail name come from there.
    package static func plan(
        relayDomains: [String], formerDomains: [String] = [], socket: String, fanOut: String? = nil,
        outgoing: [OutgoingService] = [], directory: String
    ) throws -> SetupPlan {
        let directory = URL(fileURLWithPath: directory).standardizedFileURL.path
        var configuration = try PostfixConfiguration.read(directory: directory)
        configuration.lookUp(relayDomains.map { $0.lowercased() })
        var inputs = PostfixInputs(
            relayDomains: relayDomains.map { $0.lowercased() }, socket: socket,
            hostName: configuration.expanded["myhostname"] ?? "localhost",
            mailName: configuration.expanded["mail_name"] ?? "Postfix",
            headerChecksFile: "\(directory)/postern_header_checks", fanOut: fanOut)
        inputs.outgoing = outgoing
        inputs.formerDomains = formerDomains.map { $0.lowercased() }
        inputs.formerSockets =
            (try? record(directory: directory))?.sockets.filter { $0 != socket } ?? []
        inputs.incoming = configuration.incomingServices(besides: fanOut, socket: socket)
        inputs.recipientLimit =
            Int(configuration.expanded["smtpd_recipient_limit"] ?? "") ?? inputs.recipientLimit
        let present = FileManager.default.contents(atPath: inputs.headerChecksFile).map {
            String(decoding: $0, as: UTF8.self)
        }
        // For a chrooted service, `unix:/x` is /x below the queue directory.
        let inChroot = (configuration.expanded["queue_directory"] ?? "") + socket.drop { $0 != "/" }
        return SetupPlan.make(
            inputs, for: configuration, headerChecks: present,
            socketInChroot: FileManager.default.fileExists(atPath: inChroot))
    }

    /// The record of changes to a configuration directory; nil if there is none. Throws if the
    /// record cannot be read.
    package static func record(directory: String) throws -> SetupRecord? {
        let path = "\(directory)/\(SetupRecord.fileName)"
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        do {
            return try JSONDecoder().decode(
                SetupRecord.self, from: Data(contentsOf: URL(filePath: path)))
        } catch {
            throw PostfixToolError(
                description:
                    "\(path) is damaged: move it away, and restore the settings in it by hand")
        }
    }

    /// The changes of a removal of the settings; nil if there is no record of them.
    package static func removal(directory: String) throws -> RemovalPlan? {
        let directory = URL(fileURLWithPath: directory).standardizedFileURL.path
        guard let record = try record(directory: directory) else { return nil }
        var plan = RemovalPlan(record, for: try PostfixConfiguration.read(directory: directory))
        plan.restored = record.restorable(try SetupFiles(directory: directory))
        return plan
    }

    /// Restores the earlier settings, and removes the header check and the record. Postfix must
    /// then be reloaded.
    /// - Parameter write: as in `apply`.
    package static func remove(
        _ plan: RemovalPlan, write: (_ content: Data, _ path: String) throws -> Void
    ) throws {
        try plan.apply(write: write)
        var gone = ["postern_header_checks"]
        // The settings that stay are kept in the record for the next time.
        if plan.kept.isEmpty {
            gone.append(SetupRecord.fileName)
        } else {
            try write(Data(plan.left.text().utf8), "\(plan.directory)/\(SetupRecord.fileName)")
        }
        for name in gone {
            let path = "\(plan.directory)/\(name)"
            if FileManager.default.fileExists(atPath: path) {
                try FileManager.default.removeItem(atPath: path)
            }
        }
    }

    /// Whether the Postfix configured in `directory` runs; nil if that cannot be determined, as
    /// without root.
    package static func isRunning(directory: String) -> Bool? {
        guard geteuid() == 0 else { return nil }
        do {
            _ = try PostfixTool.run("postfix", ["-c", directory, "status"])
            return true
        } catch {
            // "not running" goes to the log, and is printed here only on a terminal. Any other
            // problem is printed here.
            let said = "\(error)".split(separator: ":", maxSplits: 1).dropFirst().joined()
                .trimmingCharacters(in: .whitespaces)
            return said.isEmpty || said.contains("not running") ? false : nil
        }
    }

    /// Applies a plan: postconf changes copies of the files, which then replace the files. Throws,
    /// and changes nothing, if there are conflicts, or if postconf changed the copies in a way that
    /// the plan does not contain. A second run changes nothing more. Postfix must then be reloaded;
    /// running smtpd processes keep their settings for a while.
    /// - Parameter write: creates a file that everyone may read, or replaces it completely.
    package static func apply(
        _ plan: SetupPlan, write: (_ content: Data, _ path: String) throws -> Void
    ) throws {
        guard plan.conflicts.isEmpty else {
            throw PostfixToolError(description: plan.conflicts.joined(separator: "; "))
        }
        guard !plan.isEmpty else { return }
        let trial = try SetupTrial(plan)
        // Written before the first change. A setting that is recorded but not changed is recognised
        // later.
        var record = try record(directory: plan.directory) ?? SetupRecord()
        record.add(trial)
        record.add(plan, to: try PostfixConfiguration.read(directory: plan.directory))
        try write(Data(record.text().utf8), "\(plan.directory)/\(SetupRecord.fileName)")
        if let (path, content) = plan.headerChecks {
            try write(Data(content.utf8), path)
        }
        for (name, content) in trial.after.contents.sorted(by: { $0.key < $1.key })
        where trial.before.contents[name] != content {
            guard
                try SetupFiles(directory: plan.directory).contents[name]
                    == trial.before.contents[name]
            else {
                throw PostfixToolError(
                    description:
                        "\(name) was changed by another program at the same time: run this again")
            }
            try write(content, "\(plan.directory)/\(name)")
        }
    }

    /// Makes the changes of a plan to the files in `directory`, a folder of copies, with postconf.
    static func change(_ plan: SetupPlan, directory: String) throws {
        guard !(plan.mainChanges.isEmpty && plan.newServices.isEmpty && plan.masterChanges.isEmpty)
        else { return }
        for name in SetupFiles.names { try SetupFiles.finishLine(of: name, directory: directory) }
        if !plan.mainChanges.isEmpty {
            try PostfixTool.run(
                "postconf",
                ["-c", directory, "-e"] + plan.mainChanges.map { "\($0.name) = \($0.new)" })
        }
        for service in plan.newServices {
            try PostfixTool.run(
                "postconf", ["-c", directory, "-M", "\(service.name)=\(service.new)"])
        }
        if !plan.masterChanges.isEmpty {
            try PostfixTool.run(
                "postconf",
                ["-c", directory, "-P"] + plan.masterChanges.map { "\($0.name)=\($0.new)" })
        }
    }
}
