# `nix run .# -- review draft.md` builds and runs Quorate; `nix profile install .` installs it.
{
  description = "Councils of agents whose decisions you can audit";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      forEachSystem = build: nixpkgs.lib.genAttrs systems (system: build nixpkgs.legacyPackages.${system});
      manifest = builtins.fromTOML (builtins.readFile ./Cargo.toml);
    in
    {
      packages = forEachSystem (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "quorate";
          version = manifest.workspace.package.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          buildType = "dist";
          cargoBuildFlags = [
            "--package=quorate-cli"
            "--all-features"
          ];
          # The tests start services and need the clone's git.
          doCheck = false;
          env.QUORATE_BUILD_COMMIT = self.rev or "";
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            $out/bin/quorate man --out man
            installManPage man/*.1
            for shell in bash zsh fish; do
              $out/bin/quorate completions $shell > quorate.$shell
              installShellCompletion quorate.$shell
            done
          '';
          meta = {
            description = "Councils of agents whose decisions you can audit";
            license = [
              nixpkgs.lib.licenses.asl20
              nixpkgs.lib.licenses.mit
            ];
            mainProgram = "quorate";
          };
        };
      });
    };
}
