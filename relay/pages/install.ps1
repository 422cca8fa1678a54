# Installs svc @VERSION@ from @ORIGIN@ into %LOCALAPPDATA%\svc, or into $env:SVC_INSTALL_DIR.
# Nothing is installed unless the SHA-256 of what arrived is the one below.
$ErrorActionPreference = 'Stop'
$builds = @'
@BUILDS@
'@
$arch = if ($env:PROCESSOR_ARCHITECTURE -eq 'ARM64') { 'aarch64' } else { 'x86_64' }
$row = $builds -split "`r?`n" | ForEach-Object { , ($_ -split ' ') } |
    Where-Object { $_[0] -eq 'windows' -and ($_[1] -eq $arch -or $_[1] -eq 'universal') } |
    Select-Object -First 1
if (-not $row) { throw "svc: @ORIGIN@ has no build for windows on $arch" }
$folder = if ($env:SVC_INSTALL_DIR) { $env:SVC_INSTALL_DIR } else { Join-Path $env:LOCALAPPDATA 'svc' }
New-Item -ItemType Directory -Force -Path $folder | Out-Null
$part = Join-Path $folder ('.svc-' + [guid]::NewGuid().ToString('N') + '.exe')
try {
    Invoke-WebRequest -UseBasicParsing -Uri ('@ORIGIN@/cli/download/' + $row[2]) -OutFile $part
    $got = (Get-FileHash -Algorithm SHA256 -Path $part).Hash.ToLowerInvariant()
    if ($got -ne $row[3]) { throw 'svc: what arrived is not the build that was announced; nothing was installed' }
    $starts = $false
    try { & $part --version | Out-Null; $starts = $LASTEXITCODE -eq 0 } catch { }
    if (-not $starts) { throw 'svc: the build does not start here; is its Python installed? nothing was installed' }
    Move-Item -Force -Path $part -Destination (Join-Path $folder 'svc.exe')
} finally {
    if (Test-Path $part) { Remove-Item -Force $part }
}
Write-Output ('Installed svc @VERSION@ as ' + (Join-Path $folder 'svc.exe'))
