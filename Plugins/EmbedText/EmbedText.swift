// Makes the text files in a target's folder part of the program: see Plugins/embed-text.

import Foundation
import PackagePlugin

@main struct EmbedText: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        guard let module = target.sourceModule else { return [] }
        let folder = module.directoryURL
        let files = module.sourceFiles.map(\.url).filter { $0.pathExtension != "swift" }.sorted {
            $0.path < $1.path
        }
        let output = context.pluginWorkDirectoryURL.appending(path: "Embedded.swift")
        return [
            .buildCommand(
                displayName: "Embedding \(files.count) files of \(target.name)",
                executable: try context.tool(named: "embed-text").url,
                arguments: [output.path, folder.path] + files.map(\.path), inputFiles: files,
                outputFiles: [output])
        ]
    }
}
