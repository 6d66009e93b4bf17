// Remedies for a database that cannot be used, by cause.

import Database
import Support

enum DatabaseRemedies {
    /// - Parameters:
    ///   - place: the file, or the server's URL without its password.
    static func remedy(
        _ failure: StoreFailure, at place: String, isOnServer: Bool, isFolder: Bool, isMissing: Bool
    ) -> Remedy {
        if let fault = failure.serverFault { return remedy(fault, at: place) }
        if isMissing {
            return
                "look at the path in the key database: nothing is at \(place); otherwise restore the last backup with postern store restore"
        }
        if isFolder {
            return "database names a folder: name the file in it, as in \(place)/postern.db"
        }
        switch failure.code {
        case .permanent(.newerSchema), .permanent(.changedMigration):
            return "run the postern that made it"
        case .permanent(.empty):
            return isOnServer
                ? "look at the name of the database in the key database: this one was never made by postern init; otherwise restore the last backup"
                : "look at the path in the key database; otherwise restore the last backup with postern store restore"
        case .permanent(.unsealing):
            return
                "name in key_file the file that belongs to this database: a copy of it was to be kept apart from the backups"
        case .permanent(.corrupted), .permanent(.unexpectedData), .permanent(.constraint),
            .permanent(.statement):
            return isOnServer
                ? "stop postern serve, and restore the last backup of the server, with the key file that belongs to it"
                : "look whether \(place) is the database; if so, stop postern serve, keep it for later, and restore the last backup, "
                    + "with the key file that belongs to it"
        case .temporary(.diskFull):
            return isOnServer
                ? "free space on the server's disk" : "free space on the file system of \(place)"
        case .temporary(.busy):
            return "wait for the command or the backup that holds it; ps shows which postern runs"
        default:
            return isOnServer
                ? "check that PostgreSQL runs at \(place), accepts writes, and admits this user"
                : "run this as the user that postern serve runs as; check the folder of \(place)"
        }
    }

    private static func remedy(_ fault: ServerFault, at place: String) -> Remedy {
        switch fault {
        case .noUser:
            "name the right user in the URL, or create it at the server (createuser): \(place); where the server knows users by their name on "
                + "this machine, run this as the user that postern serve runs as (runuser -u postern -- …)"
        case .noDatabase:
            "create the database (createdb), or name the right one in the URL: \(place)"
        case .noPassword:
            "write the password into ~/.pgpass of the user that postern serve runs as, with mode 0600: HOST:PORT:DATABASE:USER:PASSWORD"
        case .wrongPassword:
            "correct the password in ~/.pgpass of the user that postern serve runs as, or set it at the server (ALTER ROLE … PASSWORD)"
        case .wrongSystemUser:
            "run this as the user that postern serve runs as (runuser -u postern -- …): the server knows users by their name here"
        case .notAdmitted:
            "add a line for this user, database and host to the server's pg_hba.conf, and reload it (pg_ctl reload)"
        case .encryption:
            "make both sides agree: ssl = on and a certificate at the server, or another sslmode in the URL; sslrootcert names who signs it"
        case .full:
            "raise max_connections of PostgreSQL, or max_client_conn and default_pool_size of PgBouncer, or end other clients"
        case .noHost:
            "correct the name of the host in the URL, or let the DNS of this machine find it: \(place)"
        case .noAnswer: "start PostgreSQL, or correct host and port in the URL: \(place)"
        case .badURL:
            "correct the URL in the key database, as in postgresql://postern@db.example:5432/postern"
        case .poolerParameter:
            "add the parameter to ignore_startup_parameters of PgBouncer, and use pool_mode = session, or name the server itself in the URL"
        case .noPrivilege:
            "make this user the owner of the tables, as the one who ran postern init is: REASSIGN OWNED BY … TO …"
        case .standby:
            "name the primary in the URL, or several hosts: libpq then finds the one that takes writes"
        case .otherEngine:
            "use PostgreSQL itself, 15 or later; if it is, remove the pooler in transaction mode from the way to it: \(place)"
        }
    }
}
